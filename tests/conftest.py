"""Hypothesis profiles, seeds, `--shuffle`, and which tests hold which requirement."""

import asyncio
import gc
import os
import ssl
import tempfile
import tomllib
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path

import pytest
import requirement_report
from amounts import PROFILE, SEED, run_seed, seed_of
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis import seed as seeded
from needed import APP_ROLE, EMPTY_STORE, need_postgres
from project_paths import DOCS
from shuffling import is_left_out, place_in_order

from refold.stores import MemoryStore

SEEDS = DOCS / "seeds.toml"
REQUIREMENTS = tomllib.loads(SEEDS.read_text(encoding="utf-8"))["requirements"].keys()

for name, examples in {
    "few": 5,
    "quick": 20,
    "ci": 25,
    "nightly": 200,
    "thorough": 2_000,
}.items():
    settings.register_profile(
        name,
        max_examples=examples,
        stateful_step_count=30,
        deadline=None,
        # All examples follow from the seed of the run (`amounts`), and from nothing else.
        database=None,
        print_blob=True,
        # A busy machine is no fault of the code.
        suppress_health_check=[HealthCheck.too_slow],
    )
NUMBERS = count(1)

# No test writes into the state of whoever runs it; the processes of one run share theirs.
os.environ.setdefault("XDG_STATE_HOME", tempfile.mkdtemp(prefix="refold-tests-"))
os.environ.setdefault("XDG_DATA_HOME", tempfile.mkdtemp(prefix="refold-tests-"))

settings.load_profile(PROFILE)


def _made_once(make):
    """Each HTTP client reads all certificates, which takes as long as a short test."""

    @cache
    def made(_where, *given, **named):
        return make(*given, **named)

    def context(*given, **named):
        where = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        return made(where, *given, **named)

    return context


ssl.create_default_context = _made_once(ssl.create_default_context)
with suppress(ImportError):
    import httpcore2

    httpcore2.default_ssl_context = _made_once(httpcore2.default_ssl_context)


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server of our own, with a store that is empty."""
    need_postgres()
    import psycopg  # noqa: PLC0415 - only where it is installed

    from refold.stores.postgres import migrate  # noqa: PLC0415 - likewise
    from refold.testing.postgres import Cluster  # noqa: PLC0415 - likewise

    with Cluster() as cluster:
        address = cluster.database(EMPTY_STORE)
        with psycopg.connect(address, autocommit=True) as db:
            db.execute(f"CREATE ROLE {APP_ROLE} LOGIN")
        asyncio.run(migrate(address, partitions=4, roles=[APP_ROLE]))
        yield cluster


@pytest.fixture
def postgres_database(postgres):
    """The name of a database with an empty store."""
    name = f"refold_{next(NUMBERS)}"
    postgres.database(name, like=EMPTY_STORE)
    yield name
    postgres.drop(name)


@pytest.fixture
def postgres_address(postgres, postgres_database):
    """The address of an empty store, for a role that may use it and no more."""
    return postgres.address(postgres_database, user=APP_ROLE)


@pytest.fixture
async def owner(postgres, postgres_database):
    """A connection to that store for its owner, who may see everything."""
    import psycopg  # noqa: PLC0415 - only where it is installed

    address = postgres.address(postgres_database)
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as opened:
        yield opened


@pytest.fixture
async def log():
    """The log of a store in memory."""
    async with MemoryStore() as store:
        yield store.log()


def pytest_addoption(parser):
    parser.addoption(
        "--requirements-report",
        metavar="FILE",
        type=Path,
        help="write which passing tests hold which requirement, as JSON (give FILE after an =)",
    )
    parser.addoption(
        "--shuffle",
        metavar="SEED",
        type=int,
        help="run the files, and the tests of each, in an order that follows from SEED",
    )

    parser.addoption(
        "--one-in",
        metavar="N",
        type=int,
        default=1,
        help="of the tests that start many processes, run one in N; which, SEED says",
    )


def pytest_report_header(config):
    seed = config.getoption("--shuffle")
    examples = f"examples: {PROFILE}, --hypothesis-seed={run_seed()}"
    return [examples] if seed is None else [examples, f"shuffled: --shuffle={seed}"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    seed, one_in = config.getoption("--shuffle"), config.getoption("--one-in")
    if one_in > 1:
        # One that holds a requirement is always run.
        left_out = {
            item
            for item in items
            if is_left_out(item.nodeid, seed or 0, one_in) and not item.get_closest_marker("req")
        }
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]
    if seed is not None:
        items.sort(key=lambda item: place_in_order(item.nodeid, seed, _played(item)))


def _played(item):
    """Which of the conversations that its file plays once a test looks at."""
    return item.callspec.params.get("played", "") if hasattr(item, "callspec") else ""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    given = config.getoption("--hypothesis-seed") or config.getoption("--shuffle")
    if given is not None:
        os.environ[SEED] = str(int(given))
    # For what hypothesis draws outside of a test that has a seed of its own. The workers of this
    # run are given it too.
    config.option.hypothesis_seed = os.environ[SEED] = str(run_seed())
    # pytest-asyncio would else make a loop to restore later, which the next asyncio.run() in a
    # test loses unclosed: a warning, and so an error, in whichever test comes then.
    asyncio.set_event_loop(None)
    target = config.getoption("--requirements-report")
    on_worker = hasattr(config, "workerinput")
    if target:
        requirement_report.watch_surfaces()
        config.pluginmanager.register(requirement_report)
    if target and not on_worker:
        config.pluginmanager.register(requirement_report.RequirementsReport(target))


def pytest_collection():
    gc.disable()


def pytest_collection_finish():
    gc.enable()
    _freeze()


def _freeze():
    """What was imported stays to the end: nobody needs to look through it for garbage again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    # Many modules are imported within tests. And what a file leaves open is its own failure, not
    # that of a test which runs when it is found.
    if nextitem is None or nextitem.path != item.path:
        _freeze()


def _settings_in_environment():
    """What decides which settings a test reads, unless it says otherwise."""
    return {name: one for name, one in os.environ.items() if name.startswith(("REFOLD_", "XDG_"))}


@pytest.fixture(scope="session", autouse=True)
def environment():
    return _settings_in_environment()


@pytest.fixture(autouse=True)
def _unchanged_environment(environment):
    # A fixture that serves a whole file is still there when a test of another file is run.
    assert _settings_in_environment() == environment


def pytest_runtest_setup(item):
    # Each test, and each set of its parameters, has other examples.
    test = getattr(item, "obj", None)
    if test is not None and is_hypothesis_test(test):
        seeded(seed_of(item.nodeid))(getattr(test, "__func__", test))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    report = yield
    for item in report.result or ():
        if isinstance(item, pytest.Item):
            numbers = {number for mark in item.iter_markers("req") for number in mark.args}
            item.user_properties += [("req", number) for number in sorted(numbers)]
            if unknown := sorted(numbers - REQUIREMENTS):
                report.outcome = "failed"
                report.longrepr = f"{item.nodeid} names {unknown}: not in {SEEDS.name}"
    return report
