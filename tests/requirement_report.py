"""Which tests hold which requirement (`@pytest.mark.req`), and on which surface each ran.

A test ran a surface if it talked in a chat, ran an agent with the capability, or asked a service or
its gateway: in this process, or in one that it started. A harness that keeps one running from test
to test says so with `ran`.
"""

import json
import subprocess
from collections import defaultdict
from contextlib import suppress
from functools import wraps
from pathlib import Path

import pytest

COMMANDS = {"chat": "chat", "demo": "chat", "serve": "service", "worker": "service"}
"""The surface of a command; others are `command`."""
TERMINAL = "terminal"
"""A chat that is typed."""

_ran: set[str] = set()


def ran(surface: str) -> None:
    """The test that is running uses this surface."""
    _ran.add("chat" if surface == TERMINAL else surface)


def watch_surfaces() -> None:
    """From now on, notice what runs."""
    _notice(subprocess.Popen, "__init__", _started)
    with suppress(ImportError):
        from typer.testing import CliRunner  # noqa: PLC0415 - only where it is installed

        _notice(CliRunner, "invoke", lambda *_, **__: ran("command"))
    with suppress(ImportError):
        from refold import Refold  # noqa: PLC0415 - only where it is installed

        _notice(Refold, "wrap_run", lambda *_, **__: ran("capability"))
    with suppress(ImportError):
        from refold.gateway.gateway import Gateway  # noqa: PLC0415 - likewise
        from refold.service.service import Service  # noqa: PLC0415 - likewise

        _notice(Gateway, "__init__", lambda *_, **__: ran("service"))
        _notice(Service, "__init__", lambda *_, **__: ran("service"))


def _notice(owner, name, notice):
    method = getattr(owner, name)

    @wraps(method)
    def noticed(*given, **named):
        notice(*given, **named)
        return method(*given, **named)

    setattr(owner, name, noticed)


def _started(_, command, *__, **___) -> None:
    words = [str(word) for word in (command if isinstance(command, list | tuple) else [command])]
    if words[0].endswith("refold") or "refold.cli" in words:
        ran(next((COMMANDS[word] for word in words if word in COMMANDS), "command"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol():
    _ran.clear()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    if call.when == "call":
        # A chat is an agent with the capability; what it shows, it shows of the chat.
        surfaces = _ran - {"capability"} if "chat" in _ran else _ran
        item.user_properties += [("surface", surface) for surface in sorted(surfaces)]
    return (yield)


class RequirementsReport:
    """Gathers from the reports, because with xdist the tests run in other processes."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.passed: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report):
        test = report.nodeid.partition("[")[0]
        if report.failed:
            self.failed.add(test)
        elif report.passed and report.when == "call":
            properties = [*report.user_properties]
            for number in (value for key, value in properties if key == "req"):
                surfaces = {value for key, value in properties if key == "surface"}
                self.passed[number][test] |= surfaces

    def pytest_sessionfinish(self):
        held = {
            number: {
                test: sorted(surfaces)
                for test, surfaces in sorted(tests.items())
                if test not in self.failed
            }
            for number, tests in sorted(self.passed.items())
        }
        held = {number: tests for number, tests in held.items() if tests}
        self.target.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
