"""Shows that an extra brings what it promises: `python tools/extra_proofs.py EXTRA`.

Run it with the Python of an environment that has the wheel with that extra and nothing else.
Without an argument it lists the extras.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

REFOLD = str(Path(sys.executable).parent / "refold")
SUITE = """\
import pytest
from refold.stores import MemoryStore
from refold.testing.conformance.appending import AppendingConformance
from refold.testing.machine import LogMachine
from refold.testing.wire import WireConformance

class TestMemory(AppendingConformance):
    @pytest.fixture
    async def store(self):
        async with MemoryStore(clock=self.clock) as store:
            yield store
"""


def models() -> None:
    """The window, the prices and the tokenizer of a model."""
    from refold.session import Setup  # noqa: PLC0415 - the subject

    setup = Setup.of("openai:gpt-4o")
    _is_so(setup.budget.window == 128_000 and setup.prices.input, "gpt-4o is not known")  # noqa: PLR2004
    _is_so(type(setup.counter).__name__ == "Exact", "the tokenizer of gpt-4o is not known")


def settings() -> None:
    """A nested value from the environment, and one that is written to the user's file."""
    from refold.settings import load_settings, set_setting  # noqa: PLC0415 - the subject

    os.environ["REFOLD_TRIM__MAX_CHARS"] = "77"
    _is_so(load_settings().profile.trim.max_chars == 77, "a variable is not read")  # noqa: PLR2004
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = folder
        set_setting("max_steps", "7")
        _is_so(load_settings().value("max_steps") == 7, "a setting is not written")  # noqa: PLR2004


def pydantic_ai() -> None:
    """An agent that goes on with a conversation."""
    from pydantic_ai import Agent  # noqa: PLC0415 - the subject
    from pydantic_ai.models.test import TestModel  # noqa: PLC0415 - the subject

    from refold import Refold  # noqa: PLC0415 - the subject

    agent = Agent(TestModel(), capabilities=[Refold()])
    agent.run_sync("one", conversation_id="c")
    again = agent.run_sync("two", conversation_id="c")
    _is_so(len(again.all_messages()) == 4, "a conversation does not go on")  # noqa: PLR2004
    # The command is another extra's: it names the one that installs it.
    for words, extra in (([], "cli"), (["sessions"], "cli"), (["chat", "-p", "hi"], "chat")):
        done = subprocess.run([REFOLD, *words], capture_output=True, text=True, check=False)  # noqa: S603
        told = f"refold {' '.join(words)} says {done.stdout}{done.stderr}"
        _is_so(done.returncode == 1 and not done.stdout, told)
        _is_so(done.stderr.splitlines()[1:] == [f"pip install 'refold[{extra}]'"], told)


def cli() -> None:
    """The command, with what is known of models."""
    told = json.loads(_refold("models", "openai:gpt-4o", "--json"))
    _is_so("128000" in json.dumps(told), f"refold models says {told}")


def chat() -> None:
    """A conversation longer than its window, in the terminal."""
    _is_so(json.loads(_refold("demo", "--json")), "refold demo says nothing")


def serve() -> None:
    """A service that answers."""
    folder = tempfile.mkdtemp()
    command = [REFOLD, "serve", "--port", "0", "--json", "--store", f"sqlite:///{folder}/s.db"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:  # noqa: S603 - ours
        try:
            line = served.stdout.readline() if served.stdout else ""
            with urlopen(json.loads(line)["address"] + "/healthz") as answer:  # noqa: S310 - ours
                _is_so(answer.status == 200, f"/healthz answers {answer.status}")  # noqa: PLR2004
        finally:
            served.terminate()
            served.wait()
            shutil.rmtree(folder)


def mcp() -> None:
    """Tools for a model, over what a store has."""
    from mcp import Client, StdioServerParameters  # noqa: PLC0415 - the subject

    from refold.stores import open_store  # noqa: PLC0415 - the subject

    async def tools(store: str) -> list[str]:
        async with open_store(store):
            server = StdioServerParameters(command=REFOLD, args=["mcp", "--store", store])
            async with Client(server) as client:
                return [tool.name for tool in (await client.list_tools()).tools]

    with tempfile.TemporaryDirectory() as folder:
        names = asyncio.run(tools(f"sqlite:///{folder}/s.db"))
    _is_so("recall_search" in names, f"the tools are {names}")


def wrap() -> None:
    """A program behind a gateway of its own."""
    told = "import os, urllib.request as r; print(r.urlopen(os.environ['ANTHROPIC_BASE_URL']))"
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/s.db"
        command = [REFOLD, "wrap", "--store", store, "--", sys.executable, "-c", told]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
        _is_so("HTTP Error 404" in done.stderr, f"refold wrap says {done.stderr}")
        _is_so("No request came through" in done.stderr, f"refold wrap says {done.stderr}")


def postgres() -> None:
    """The store is found by its address."""
    from refold.stores import open_store  # noqa: PLC0415 - the subject

    store = open_store("postgresql://nobody@127.0.0.1:1/none")
    _is_so(type(store).__name__ == "PostgresStore", f"the store is {store}")


def dbos() -> None:
    """The engine, and the store it works on."""
    from refold.engine.dbos import DbosEngine, Worker  # noqa: PLC0415 - the subject

    _is_so(DbosEngine and Worker, "there is no engine")
    postgres()


def metrics() -> None:
    """What the process measures, for Prometheus."""
    from refold.service.metrics import export_to_prometheus, render  # noqa: PLC0415 - the subject

    export_to_prometheus()
    _is_so(b"python_info" in render()[0], "nothing is measured")


def testing() -> None:
    """A suite that runs in a project with no settings of ours."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_store.py").write_text(SUITE, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-o", "asyncio_mode=auto", folder]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
        _is_so(done.returncode == 0 and " passed" in done.stdout, done.stdout)


PROOFS: dict[str, Callable[[], None]] = {
    "chat": chat,
    "cli": cli,
    "dbos": dbos,
    "mcp": mcp,
    "metrics": metrics,
    "models": models,
    "postgres": postgres,
    "pydantic-ai": pydantic_ai,
    "serve": serve,
    "settings": settings,
    "testing": testing,
    "wrap": wrap,
}


def _refold(*words: str) -> str:
    done = subprocess.run([REFOLD, *words], capture_output=True, text=True, check=False)  # noqa: S603
    _is_so(done.returncode == 0, f"refold {words[0]}: {done.stderr}")
    return done.stdout


def _is_so(fact: object, else_said: str) -> None:
    if not fact:
        raise SystemExit(else_said)


def main() -> None:
    """Prove one extra, or list them all."""
    if len(sys.argv) > 1:
        PROOFS[sys.argv[1]]()
    else:
        print("\n".join(PROOFS))


if __name__ == "__main__":
    main()
