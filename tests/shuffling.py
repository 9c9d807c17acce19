"""The order of `pytest --shuffle=SEED`: of the files, and of the tests within each.

The tests of a file stay together, for what is made once for a file would else be made for each; and
so do those of one conversation that a whole file of tests looks at.
Files whose tests take minutes come first: what begins last keeps the other processes waiting.
The place of a test follows from its name and the seed alone. So a few tests are run in the order
that they have among all, and a failure can be looked into without the whole suite.
"""

from hashlib import sha256

LONG = (
    *("durability/", "terminal/", "cli/test_chat_mcp.py", "cli/test_doctor_stores.py"),
    *("cli/test_agent_doctor.py", "cli/test_hook", "cli/test_up_and_env.py", "cli/test_wrap"),
    *("console/test_console_browser.py", "console/test_console_folds.py"),
    *("console/test_console_hostile.py", "gateway/test_hidden_recall.py", "lab/test_lab_tune.py"),
    *("docs/test_runbook.py", "faults/test_agent_kills.py"),
    *(
        "cli/test_hostile_imports.py",
        "cli/test_hostile_mcp_servers.py",
        "cli/test_private_files.py",
    ),
    *("gateway/test_service_edge.py", "gateway/test_slow_clients.py"),
    *("integrations/test_many_conversations.py", "project/test_recipes.py"),
    *("service/test_service_offload.py", "service/test_service_outage.py"),
    *("session/test_session_owners.py", "settings/test_hostile_repository.py"),
    "stores/test_search_surfaces.py",
)
"""Tests that start many processes: a third of the whole suite's time in a thirtieth of its tests.
`--one-in=N` runs one in N of them, and others with another `--shuffle`."""

_FIRST = (
    *("docs/test_runbook.py", "faults/", "integrations/test_many_conversations.py"),
    *("local_model/", "project/test_recipes.py", "terminal/test_chat_local_model.py"),
)


def place_in_order(name: str, seed: int, played: str = "") -> tuple[bool, bytes, bytes, bytes]:
    """What to sort a test by; its name begins with its file."""
    file = name.partition("::")[0]
    later = not file.removeprefix("tests/").startswith(_FIRST)
    return later, _drawn(file, seed), _drawn(played, seed), _drawn(name, seed)


def _drawn(name: str, seed: int) -> bytes:
    return sha256(f"{seed} {name}".encode()).digest()


def is_left_out(name: str, seed: int, one_in: int) -> bool:
    """Whether a test is a long one, and not among those that are run in this order."""
    within = name.removeprefix("tests/").startswith(LONG)
    return within and int.from_bytes(_drawn(f"share {name}", seed)) % one_in != 0
