"""The pytest plugin: each recorded session of a `refold-ci.json` is a test.

Where the prompt or the tools are made by code, the fixture `refold_ci` checks what the code makes.
Nothing is imported before there is something to check: pytest loads plugins at every start.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from refold.lab.regression import Expectations, Prompt, Result
    from refold.view.profiles import Profile

FILE: Final = "refold-ci.json"
_UPDATE: Final = "--refold-update"
_OTHERS: Final = "sessions"
"""The test of sessions that the file does not expect."""

__all__ = ["pytest_addoption", "pytest_collect_file", "refold_ci"]

Text = str | list[Any] | Callable[[], str | list[Any]]
"""Instructions or tools, or what makes them."""
Check = Callable[..., None]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("refold")
    help_ = f"accept what is sent now: write the expected values of each {FILE}"
    group.addoption(_UPDATE, action="store_true", default=False, help=help_)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "pytest.Collector | None":
    if file_path.name != FILE:
        return None
    return _File.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType] - untyped there


class _File(pytest.File):
    """A file of expected values; its sessions are replayed once, for all of its tests."""

    _result: "Result | None" = None

    def collect(self) -> Iterator[pytest.Item]:
        from refold.lab.regression import read_expectations  # noqa: PLC0415 - see above

        before = read_expectations(self.path)
        if any(part and not part.file for part in (before.instructions, before.tools)):
            return  # a test gives them, and checks the file itself
        for name in (*before.expected, _OTHERS):
            yield _Session.from_parent(self, name=name)  # pyright: ignore[reportUnknownMemberType] - untyped there

    def result(self) -> "Result":
        from refold.lab import regression  # noqa: PLC0415 - see above

        if self._result is None:
            before = regression.read_expectations(self.path)
            instructions, tools = (
                regression.prompt_in(self.path.parent, part)
                for part in (before.instructions, before.tools)
            )
            self._result = regression.check(
                self.path, before, instructions=instructions, tools=tools
            )
            _update(self.config, self.path, self._result)
        return self._result


class _Session(pytest.Item):
    def runtest(self) -> None:
        assert isinstance(self.parent, _File)  # noqa: S101 - see collect
        result = self.parent.result()
        tests = {item.name for item in self.session.items if item.parent is self.parent}
        mine = [
            problem
            for problem in result.problems
            if problem.session == self.name
            or (self.name == _OTHERS and problem.session not in tests)
        ]
        if mine and not self.config.getoption(_UPDATE):
            raise _Worse("\n".join(_report(result, {problem.session for problem in mine})))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ANN401 - as pytest has it
        if isinstance(excinfo.value, _Worse):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"refold ci: {self.name}"


class _Worse(Exception):
    """A session became worse than the file allows."""


@pytest.fixture
def refold_ci(request: pytest.FixtureRequest) -> Check:
    """Check recorded sessions with the instructions and tools that your code makes.

    The function takes `instructions` and `tools`, as text, as a list of definitions, or as a
    function that makes either; `file`, the expected values (`refold-ci.json` beside the test);
    `sessions`, paths beside that file, with which it is begun; and `profile`, a `Profile`. What a
    function makes must be the same each time, or no provider's cache would ever be hit.
    """

    def check(
        instructions: Text | None = None,
        tools: Text | None = None,
        *,
        file: str | Path = FILE,
        sessions: tuple[str, ...] = (),
        profile: "Profile | None" = None,
    ) -> None:
        from refold.lab import regression  # noqa: PLC0415 - see above

        path = request.path.parent / file
        update = bool(request.config.getoption(_UPDATE))
        before = _expectations(path, sessions, update=update)
        prompts = [_prompt("instructions", instructions), _prompt("tools", tools)]
        result = regression.check(
            path, before, instructions=prompts[0], tools=prompts[1], profile=profile
        )
        _update(request.config, path, result)
        if not result.passed and not update:
            pytest.fail("\n".join(result.lines()), pytrace=False)

    return check


def _expectations(path: Path, sessions: tuple[str, ...], *, update: bool) -> "Expectations":
    from refold.lab.regression import Expectations, read_expectations  # noqa: PLC0415 - see above

    if update and sessions and not path.exists():
        return Expectations(sessions=sessions)
    before = read_expectations(path)
    return before.model_copy(update={"sessions": sessions}) if sessions else before


def _prompt(what: str, given: Text | None) -> "Prompt | None":
    from refold.lab.regression import Prompt  # noqa: PLC0415 - see above

    if given is None:
        return None
    text, again = _text(given), _text(given)
    if text != again:
        at = next(
            (i for i, (a, b) in enumerate(zip(text, again, strict=False)) if a != b),
            min(len(text), len(again)),
        )
        pytest.fail(
            f"prefix: the {what} are not the same when they are made twice, so a provider's cache "
            f"never holds them. They differ from character {at} on: "
            f"{text[at : at + 40]!r}, {again[at : at + 40]!r}",
            pytrace=False,
        )
    return Prompt(text)


def _text(given: Text) -> str:
    value = given() if callable(given) else given
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _update(config: pytest.Config, path: Path, result: "Result") -> None:
    from refold.lab.regression import write_expectations  # noqa: PLC0415 - see above

    if config.getoption(_UPDATE) and result.now is not None:
        write_expectations(path, result.now)


def _report(result: "Result", sessions: set[str]) -> Iterator[str]:
    for problem in result.problems:
        if problem.session in sessions:
            yield f"{problem.kind}: {problem.session}: {problem.text}"
    for session, lines in result.differences.items():
        if session in sessions:
            yield f"The first request that differs: {lines[0]}"
            yield from lines[1:]
    yield f"Look at the difference, then accept it with {_UPDATE}."
