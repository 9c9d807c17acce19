"""Recorded sessions as a test: what they would cost and lose now, next to what was expected.

The expected values are in a small file that is kept beside the code. A change of the prompt, of the
tools or of the policy is replayed on the same sessions; what became worse than the file allows is a
problem, and its requests are compared with those of the policy that the file was written for.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from refold.errors import InvalidInput
from refold.lab.measure import Job, Outcome, each_measured
from refold.lab.messages import o200k
from refold.lab.report import Case, CaseOptions, case_of
from refold.lab.session_files import FIX, SessionFile, recordings
from refold.lab.trace import difference
from refold.settings import load_settings
from refold.settings.names import leaves, nested
from refold.view.profiles import PROFILES, Profile
from refold.view.profiles import profile as profile_of

FILE: Final = "refold-ci.json"
Lifetime = Literal["none", "5m", "1h"]
_SECONDS: Final[Mapping[Lifetime, float | None]] = {"none": None, "5m": 300, "1h": 3_600}
Kind = Literal["cost", "names", "edits", "rules", "illegal", "prefix", "sessions"]
_MAX_SHOWN: Final = 3
"""Sessions whose requests are compared."""
_MAX_RULES: Final = 3
_UPDATE: Final = "Look at the difference, then accept it with --update."


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Expected(_Kept):
    """What a session cost, kept and lost when the file was written."""

    cost: float
    names: float
    edits: float
    rules_lost: int
    illegal: int
    moved: int
    requests: int
    digest: str


class Part(_Kept):
    """The instructions or the tools that begin every request, when the file was written."""

    file: str
    tokens: int
    sha256: str


class Tolerance(_Kept):
    """How much worse a session may become."""

    cost: float = 0.02
    """As a share of what it cost."""
    kept: float = 0.01
    """As a share of names and of edits."""


class Expectations(_Kept):
    """The file of expected values, and how they were measured."""

    refold_ci: Literal[1] = 1
    sessions: tuple[str, ...]
    """Session files, or folders of them; beside the file, if they are relative."""
    instructions: Part | None = None
    tools: Part | None = None
    window: int | None = None
    lifetime: Lifetime = "5m"
    profile: str = "balanced"
    values: dict[str, object] = {}
    """Where the profile differs from the one of that name."""
    tolerance: Tolerance = Tolerance()
    expected: dict[str, Expected] = {}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that became worse than the file allows."""

    kind: Kind
    session: str
    text: str


@dataclass(slots=True)
class Result:
    """What came of a check."""

    problems: list[Problem] = field(default_factory=list[Problem])
    notes: list[str] = field(default_factory=list[str])
    """What changed, and is allowed to."""
    differences: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """By session with a problem: the first request that differs."""
    now: Expectations | None = None
    """What the file would say if it were updated."""

    @property
    def passed(self) -> bool:
        return not self.problems

    def lines(self) -> Iterator[str]:
        """The result for people."""
        for problem in self.problems:
            yield f"{problem.kind}: {problem.session}: {problem.text}"
        for session, lines in self.differences.items():
            yield ""
            yield f"The first request of {session} that differs:"
            yield from (f"  {line}" for line in lines)
        if self.problems:
            yield ""
            yield _UPDATE
        yield from self.notes


@dataclass(frozen=True, slots=True)
class Prompt:
    """What begins every request beside its messages: its text, and where that comes from."""

    text: str
    source: str = ""

    def part(self) -> Part:
        return Part(
            file=self.source,
            tokens=o200k()(self.text),
            sha256=sha256(self.text.encode()).hexdigest()[:16],
        )


def read_expectations(path: Path) -> Expectations:
    """The file. Raises InvalidInput where it is none."""
    try:
        return Expectations.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        fix = "Write it: refold ci SESSIONS... --update"
        raise InvalidInput(f"There are no expected values in {path}.", fix) from None
    except (OSError, ValidationError) as error:
        what = error.strerror if isinstance(error, OSError) else error.errors()[0]["msg"]
        fix = "Restore it, or write a new one: refold ci SESSIONS... --update"
        raise InvalidInput(f"{path} cannot be read: {what}.", fix) from error


def write_expectations(path: Path, now: Expectations) -> None:
    """Write the file; a part that is not set is left out."""
    value = now.model_dump(exclude_none=True, exclude_defaults=False)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def prompt_in(folder: Path, part: Part | None) -> Prompt | None:
    """The text of a part, from the file that it was read from."""
    if part is None or not part.file:
        return None
    try:
        return Prompt((folder / part.file).read_text(encoding="utf-8"), part.file)
    except (OSError, UnicodeDecodeError) as error:
        fix = f"Restore {part.file}, or name another file and --update."
        raise InvalidInput(f"{part.file} cannot be read: {why_unreadable(error)}.", fix) from error


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """In words: the error's own text would name the path again."""
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8"


def check(
    file: Path,
    before: Expectations,
    *,
    instructions: Prompt | None = None,
    tools: Prompt | None = None,
    profile: Profile | None = None,
) -> Result:
    """Replay the sessions as they would be sent now, and compare with the expected values.

    Args:
        file: Where the expected values are kept; paths in them are relative to its folder.
        before: The expected values.
        instructions: The instructions that every request has now.
        tools: The definitions of the tools that it has.
        profile: The policy; by default that of the settings that apply in the file's folder.
    """
    settings = load_settings(folder=file.parent)
    now = profile or settings.profile
    parts = [part.part() if part else None for part in (instructions, tools)]
    fixed = sum(part.tokens for part in parts if part)
    options = CaseOptions(before.window, None, None, fixed, _SECONDS[before.lifetime])
    cases = _cases(file.parent, before.sessions, options)
    outcomes = _replayed(cases, now)
    result = Result(
        now=before.model_copy(
            update={
                "instructions": parts[0],
                "tools": parts[1],
                "profile": _name(now),
                "values": _values(now),
                "expected": {name: _expected(one) for name, one in outcomes.items() if one.row},
            }
        )
    )
    for name, outcome in outcomes.items():
        result.problems += _problems(name, before, outcome)
    gone = before.expected.keys() - outcomes.keys()
    result.problems += [Problem("sessions", name, "it is not there any more") for name in gone]
    result.notes += _notes(before, parts, outcomes)
    if profile is None:
        result.notes += _notes_on_sources(settings.sources, now)
    worse = list(dict.fromkeys(problem.session for problem in result.problems))
    shown = [name for name in worse if name in before.expected and name in outcomes][:_MAX_SHOWN]
    result.differences = _differences(before, {name: cases[name] for name in shown}, outcomes)
    return result


def _cases(folder: Path, paths: Sequence[str], options: CaseOptions) -> dict[str, Case]:
    """The sessions by their files, as seen from the folder."""
    found: dict[str, Case] = {}
    files: list[SessionFile] = []
    for file in recordings(folder / path for path in paths):
        files.append(file)
        path = Path(file.path)
        name = path.relative_to(folder) if path.is_relative_to(folder) else path
        for nth, recording in enumerate(file.recordings):
            more = f"#{nth + 1}" if len(file.recordings) > 1 else ""
            found[f"{name.as_posix()}{more}"] = case_of(recording, options)
    if not found:
        raise InvalidInput(f"No session could be read from {', '.join(paths)}.", FIX)
    return dict(sorted(found.items()))


def _replayed(cases: Mapping[str, Case], profile: Profile) -> dict[str, Outcome]:
    names = list(cases)
    jobs = [
        Job(index, case, (), case.adapt(profile), case.budget(profile), traced=True)
        for index, case in enumerate(cases.values())
    ]
    found = {
        names[outcome.session]: outcome
        for _, outcomes in each_measured(jobs)
        for outcome in outcomes
    }
    return {name: found[name] for name in names}


def _expected(outcome: Outcome) -> Expected:
    row, trace = outcome.row, outcome.trace
    assert row is not None and trace is not None  # noqa: S101, PT018 - it was measured
    return Expected(
        cost=round(row.cost, 6),
        names=round(row.retained.rate, 4),
        edits=round(row.edits.rate, 4),
        rules_lost=len(trace.lost),
        illegal=outcome.refused,
        moved=trace.moved,
        requests=row.requests,
        digest=trace.digest,
    )


def _problems(name: str, before: Expectations, outcome: Outcome) -> Iterator[Problem]:
    old = before.expected.get(name)
    if outcome.row is None or outcome.trace is None:
        yield Problem("sessions", name, f"it could not be replayed: {outcome.error}")
        return
    if old is None:
        yield Problem("sessions", name, "there are no expected values for it")
        return
    new, allowed = _expected(outcome), before.tolerance
    if new.cost > old.cost * (1 + allowed.cost):
        more = f"{new.cost / old.cost - 1:.1%}" if old.cost else "all"
        limit = f"at most {allowed.cost:.0%} more is allowed"
        yield Problem("cost", name, f"${old.cost:.4f} before, ${new.cost:.4f} now: {more}; {limit}")
    shares: tuple[tuple[Kind, float, float], ...] = (
        ("names", old.names, new.names),
        ("edits", old.edits, new.edits),
    )
    for kind, kept, keeps in shares:
        if keeps < kept - allowed.kept:
            yield Problem(kind, name, f"{kept:.1%} kept before, {keeps:.1%} now")
    if new.rules_lost > old.rules_lost:
        lost = [f"{one.rule!r} (request {one.request})" for one in outcome.trace.lost]
        more = f" and {len(lost) - _MAX_RULES} more" if len(lost) > _MAX_RULES else ""
        text = f"rules of the user's that are not sent any more: {', '.join(lost[:_MAX_RULES])}"
        yield Problem("rules", name, f"{text}{more}; {old.rules_lost} were expected")
    if new.illegal > old.illegal:
        why = "too long for the window, or with a tool call cut from its result"
        yield Problem("illegal", name, f"{new.illegal} requests {why}; {old.illegal} were expected")
    if new.moved > old.moved:
        text = "requests do not begin with all of the one before"
        yield Problem("prefix", name, f"{new.moved} {text}; {old.moved} were expected")


def _notes(
    before: Expectations, parts: Sequence[Part | None], outcomes: Mapping[str, Outcome]
) -> Iterator[str]:
    for what, old, new in zip(
        ("instructions", "tools"), (before.instructions, before.tools), parts, strict=True
    ):
        if before.expected and (old and old.sha256) != (new and new.sha256):
            sizes = f"{old.tokens if old else 0:,} tokens before, {new.tokens if new else 0:,} now"
            yield (
                f"The {what} changed ({sizes}). In running conversations, the first request "
                "after such a change finds nothing in the provider's cache."
            )
    changed = [
        name
        for name, outcome in outcomes.items()
        if outcome.trace and name in before.expected
        if before.expected[name].digest != outcome.trace.digest
    ]
    if changed:
        yield f"Other requests than before in {len(changed)} of {len(outcomes)} sessions."
    costs = [(before.expected[name].cost, one.row.cost) for name, one in outcomes.items()
             if one.row and name in before.expected]  # fmt: skip
    if costs:
        old_cost, new_cost = (sum(column) for column in zip(*costs, strict=True))
        yield f"All together: ${old_cost:.4f} before, ${new_cost:.4f} now."


def _notes_on_sources(sources: Mapping[str, object], profile: Profile) -> Iterator[str]:
    own = [key for key, _ in leaves(profile.model_dump()) if _level(sources.get(key)) == "user"]
    if own:
        yield (
            f"From your own settings, which others do not have: {', '.join(own)}. Set them for the "
            "project instead: refold config KEY VALUE --project"
        )


def _level(source: object) -> object:
    return getattr(source, "level", None)


def _differences(
    before: Expectations, cases: Mapping[str, Case], outcomes: Mapping[str, Outcome]
) -> dict[str, list[str]]:
    """The first request that differs from those of the policy that the file was written for."""
    if not cases:
        return {}
    fixed = sum(part.tokens for part in (before.instructions, before.tools) if part)
    then = _profile_of(before)
    options = CaseOptions(before.window, None, None, fixed, _SECONDS[before.lifetime])
    old = _replayed({name: case_of(one.recording, options) for name, one in cases.items()}, then)
    found: dict[str, list[str]] = {}
    for name, outcome in old.items():
        trace, now = outcome.trace, outcomes[name].trace
        if trace is None or now is None:
            continue
        lines = [*difference(trace, now)]
        if trace.digest != before.expected[name].digest:
            lines.append(
                "The expected values were written by a version of Refold that sent other requests: "
                "the ones above are what this version sends with those settings."
            )
        elif not lines:
            lines.append("none: only the instructions and tools changed")
        found[name] = lines
    return {name: lines for name, lines in found.items() if lines}


def _name(profile: Profile) -> str:
    return profile.name if profile.name in PROFILES else "balanced"


def _values(profile: Profile) -> dict[str, object]:
    shipped = dict(leaves(PROFILES[_name(profile)].model_dump(mode="json")))
    own = leaves(profile.model_dump(mode="json"))
    return {key: value for key, value in own if key != "name" and shipped.get(key) != value}


def _profile_of(before: Expectations) -> Profile:
    base = profile_of(before.profile)
    values = {**dict(leaves(base.model_dump(mode="json"))), **before.values}
    try:
        return Profile.model_validate(nested(values))
    except ValidationError as error:
        fix = "Write a new file: refold ci --update"
        raise InvalidInput(
            "The values in the file are not a profile of this version.", fix
        ) from error
