"""Facts from the log, by code: files, commands, errors, open calls, and where things stand.

Each names the entry that it comes from. Facts of earlier folds are merged: what is newer takes the
place of what it is about, an error that was solved since says so, and a call that was answered
since is no longer open.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from pydantic_core import from_json

from refold.fold.material import Passage
from refold.fold.summary import Claim, one_line
from refold.fold.watchdog import (
    CHANGING,
    PATH_ARGUMENTS,
    SUBJECT_ARGUMENTS,
    first_argument,
)
from refold.log import PartRef
from refold.view.framing import tool_name
from refold.wire import Kind, Shape

EARLIER = "From an earlier summary"
VALUES = "Values that changed: the newest, and the one before it"
THREADS = "Causes, decisions and results, as the assistant put them"
CHANGED = "Files changed"
READ = "Files read"
COMMANDS = "Commands and tests, with their last result"
ERRORS = "Errors and what came of them"
OPEN = "Calls without an answer"
RESULTS = "Large results, which are left out here"
STATE = "Where it stood"
NEXT = "Next, in the model's words"

_MAX_ERRORS = 12  # errors that nothing has ended
_MAX_SOLVED = 4
_MAX_FILES = 15
_MAX_COMMANDS = 12  # that say how they ended
_MAX_SILENT = 4
_MAX_OPEN = 8
_MAX_RESULTS = 400  # all but the newest are shown by part only
_LARGE = 2_000  # characters
_LAST_CALLS = 4
_LINE = 160
_MAX_KEY = 400
_MAX_COMMAND = 2_000  # a longer one is a script
_LAST_WORDS = 600
_MAX_SEARCHED = 20_000  # characters of a result in which an error is looked for

_ERROR: Final = re.compile(  # at the beginning of a line: a program's complaint, not its source
    r"^(?:\S{1,40}: )?(?:\w*(?:Error|Exception)\b|error\b|fatal\b|panic\b|Traceback\b|FAILED\b"
    r"|failed\b|npm ERR|.{0,60}(?:No such file|Permission denied|command not found)"
    r"|(?:Command |Process )?exit(?:ed)? (?:with )?(?:code|status) [1-9]).*$",
    re.IGNORECASE | re.MULTILINE,
)
_EXIT: Final = re.compile(r"\W*(?:command |process )?exit(?:ed)?\b.*\d\W*$", re.IGNORECASE)
_RAISED: Final = re.compile(r"^\w[\w.]*(?:Error|Exception|Interrupt|Exit)\b.*$", re.MULTILINE)
_COMMAND_ARGUMENTS = ("command", "cmd", "script")
_OUTCOME: Final = re.compile(
    r"\b(?:pass(?:ed)?|fail(?:ed|ures?)?|errors?|ok|succe\w+|warnings?|exit(?:ed)?|done|built"
    r"|\d+ tests?)\b",
    re.IGNORECASE,
)
_LOOKING: Final = re.compile(
    r"\s*(?:cd\s+[^&;|]+(?:&&|;)\s*)*(?:cat|ls|ll|head|tail|grep|rg|ag|find|fd|sed -n|awk|jq|diff"
    r"|wc|tree|echo|pwd|which|type|file|stat|du|df|env|printenv"
    r"|git (?:show|diff|log|status|blame|branch))\b"
)
"""Commands that only show something: what they print is no result of theirs."""
_FILTER: Final = re.compile(
    r"\s*(?:2>&1\s*)?\|\s*(?:tail|head|e?grep|rg)\b((?:\s+(?:\"[^\"]*\"|'[^']*'|[^|\"'\s]+))*)\s*$"
    r"|\s*2>&1\s*$"
)
"""What shortens the output of a command."""
_INTENT: Final = re.compile(
    r"\b(?:next|now|then|let me|i'll|i will|todo|remaining|still)\b", re.IGNORECASE
)
_CLAUSE_END: Final = re.compile(r"(?<=[.!?:])\s+")


class CallResult(NamedTuple):
    """A call and its result."""

    call: Shape
    made: PartRef | None
    """Where the call is; none if it lies before these messages."""
    ref: PartRef
    result: str

    @property
    def subject(self) -> str:
        return _call_text(self.call)

    @property
    def key(self) -> str:
        """What makes two calls the same, however their output is shortened."""
        if self.command:
            return one_line(_unfiltered(self.command), _MAX_KEY)
        return _call_text(self.call, _MAX_KEY)

    @property
    def path(self) -> str | None:
        return first_argument(self.call.text, PATH_ARGUMENTS)

    @property
    def command(self) -> str | None:
        return _command(self.call)

    @property
    def changes(self) -> bool:
        return bool(CHANGING.search(self.call.tool or ""))

    @property
    def error(self) -> str:
        """The line in which a program complains; empty if none does."""
        result = self.result[:_MAX_SEARCHED].lstrip()
        if self.command and _LOOKING.match(self.command):
            return ""
        # Errors within a file are not the call's.
        found = (_ERROR.search if self.command or not self.path else _ERROR.match)(result)
        if found is None:
            return ""
        line = found.group()
        if line.startswith("Traceback"):  # what was raised stands at its end
            line = [line, *_RAISED.findall(result, found.end())][-1]
        elif _EXIT.match(line):  # the reason stands in the output
            others = (one.group() for one in _ERROR.finditer(result, found.end()))
            last = [line, *filter(str.strip, result[found.end() :].splitlines())][-1]
            line = next((one for one in others if not _EXIT.match(one)), last)
        return one_line(line, _LINE)


def call_results(passages: Iterable[Passage]) -> list[CallResult]:
    """Each result of a tool, with the call that it answers."""
    calls: dict[str | None, tuple[Shape, PartRef]] = {}
    found: list[CallResult] = []
    for passage in passages:
        for index, shape in enumerate(passage.shapes):
            if shape.kind == "call":
                calls[shape.call] = shape, passage.ref(index)
            elif shape.kind == "return":
                call, made = calls.get(shape.call, (shape._replace(text=""), None))
                found.append(CallResult(call, made, passage.ref(index), shape.text))
    return found


def changed_files(calls: Iterable[CallResult], earlier: Iterable[Claim]) -> list[Claim]:
    """The files that calls changed; a call that failed changed none."""
    return _newest((*earlier, *_changes(calls)), _MAX_FILES)


def files_read(
    calls: Iterable[CallResult], earlier: Iterable[Claim], changed: Iterable[Claim]
) -> list[Claim]:
    """The files that were read and not changed."""
    read = (
        _file(path, made.made)
        for made in calls
        if (path := made.path) and made.made and not made.changes and not made.error
    )
    gone = {claim.text for claim in changed}
    return _newest((one for one in (*earlier, *read) if one.text not in gone), _MAX_FILES)


def commands(calls: Iterable[CallResult], earlier: Iterable[Claim]) -> list[Claim]:
    """The last result of each command, the newest last."""
    newest = _newest((*earlier, *_commands(calls)))
    telling = [claim for claim in newest if has_outcome(claim)][-_MAX_COMMANDS:]
    others = [claim for claim in newest if not has_outcome(claim)][-_MAX_SILENT:]
    return sorted((*telling, *others), key=lambda claim: claim.sources)


def has_outcome(claim: Claim) -> bool:
    """Whether the result of a command says how it ended."""
    return bool(_OUTCOME.search(claim.text.rpartition(': "')[2]))


def errors(calls: Sequence[CallResult], earlier: Iterable[Claim]) -> list[Claim]:
    """Errors, with what ended them; those that nothing has ended outlive the others."""
    worked: dict[str, list[PartRef]] = {}
    found = [*earlier]
    for made in calls:
        if error := made.error:
            text = f'The tool {made.subject} returned: "{error}"'
            found.append(Claim(text, (made.ref,), key=made.key))
        else:
            worked.setdefault(made.key, []).append(made.ref)
    changes = list(_changes(calls))
    # Where the same call failed again, that is how it stands.
    told = [_with_end(claim, worked, changes) for claim in _newest(found)]
    unsolved = [claim for claim in told if not is_solved(claim)][-_MAX_ERRORS:]
    solved = [claim for claim in told if is_solved(claim)][-_MAX_SOLVED:]
    return sorted((*unsolved, *solved), key=lambda claim: claim.sources[:1])


def open_calls(passages: Iterable[Passage], earlier: Iterable[Claim]) -> list[Claim]:
    passages = list(passages)
    ends = {shape.call for _, _, shape in _parts(passages, "return")}
    made = (
        Claim(_call_text(shape), (passage.ref(index),), key=shape.call or "")
        for passage, index, shape in _parts(passages, "call")
    )
    still = [one for one in (*earlier, *made) if not one.key or one.key not in ends]
    return [*{(one.text, one.sources[0].seq): one for one in still}.values()][-_MAX_OPEN:]


def large_results(calls: Iterable[CallResult], earlier: Iterable[Claim]) -> list[Claim]:
    """Large results, each with the reference by which recall reads it."""
    found = (
        Claim(f"{one.subject} […archived: {len(one.result)} chars, part {part}]", (one.ref,))
        for one in calls
        if len(one.result) > _LARGE
        for part in (f"{one.ref.seq}.{one.ref.index}",)
    )
    return _newest((*earlier, *found), _MAX_RESULTS)


def state(passages: Sequence[Passage], since: int) -> list[Claim]:
    """The last calls since the user's newest message, and what the model said last."""
    calls = [
        Claim(f"The model called {_call_text(shape)}", (passage.ref(index),))
        for passage, index, shape in _parts(passages, "call")
        if passage.seq >= since
    ][-_LAST_CALLS:]
    last = _last_words(passages)
    if last is None:
        return calls
    text = one_line(last.text, _LAST_WORDS)
    return [*calls, Claim(f'The model last said: "{text}"', last.sources)]


def next_steps(passages: Sequence[Passage]) -> list[Claim]:
    """What the model said it would do next."""
    last = _last_words(passages)
    if last is None:
        return []
    clauses = _CLAUSE_END.split(" ".join(last.text.split()))
    plans = [clause for clause in clauses if _INTENT.search(clause)]
    return [Claim(f'"{one_line(plans[-1], 2 * _LINE)}"', last.sources)] if plans else []


def _newest(claims: Iterable[Claim], limit: int = _MAX_RESULTS) -> list[Claim]:
    """The last claims, each key once, at its last occurrence."""
    newest: dict[str, Claim] = {}
    for claim in claims:
        key = claim.key or claim.text
        newest.pop(key, None)
        newest[key] = claim
    return [*newest.values()][-limit:]


def _changes(calls: Iterable[CallResult]) -> Iterator[Claim]:
    for made in calls:
        if made.changes and (path := made.path) and made.made and not made.error:
            yield _file(path, made.made)


def _file(path: str, ref: PartRef | None) -> Claim:
    return Claim(one_line(path, _LINE), (ref,) if ref else ())


def _commands(calls: Iterable[CallResult]) -> Iterator[Claim]:
    """What was run, and the line in which it says how it ended."""
    for made in calls:
        command = made.command
        if not command or _LOOKING.match(command):
            continue
        lines = [line for line in made.result[-_MAX_SEARCHED:].splitlines() if line.strip()]
        if lines:
            telling = [line for line in lines if _OUTCOME.search(line)]
            silent = [line for line in telling if not _EXIT.match(line)]
            said = one_line((silent or telling or lines)[-1], _LINE)
            label = one_line(command, _LINE)
            yield Claim(f'{label}: "{said}"', (made.ref,), key=made.key)


def is_solved(claim: Claim) -> bool:
    return len(claim.sources) > 1 or claim.text.endswith("worked later)")


def _with_end(
    claim: Claim, worked: Mapping[str, Sequence[PartRef]], changes: Iterable[Claim]
) -> Claim:
    """The error, with the next such call that showed none, and what was changed in between."""
    start = claim.sources[0]
    end = next((ref for ref in worked.get(claim.key, ()) if ref > start), None)
    if end is None or is_solved(claim):
        return claim
    files = dict.fromkeys(one.text for one in changes if start < one.sources[0] < end)
    after = f", after changes to {one_line(', '.join(files), _LINE)}" if files else ""
    text = f"{claim.text} (no error from the same call in entry {end.seq}{after})"
    return replace(claim, text=text, sources=(start, end))


def _last_words(passages: Sequence[Passage]) -> Claim | None:
    for passage in reversed(passages):
        for index, shape in reversed(list(enumerate(passage.shapes))):
            if shape.kind == "text" and shape.text.strip():
                return Claim(shape.text, (passage.ref(index),))
    return None


def _unfiltered(command: str) -> str:
    """The command without what shortens its output and hides no error of it."""
    while len(command) <= _MAX_COMMAND and (match := _FILTER.search(command)):
        if "grep" in match.group() and not re.search(r"(?i)error|fail|warn", match[1] or ""):
            break
        command = command[: match.start()]
    return command


def _call_text(shape: Shape, room: int = _LINE // 2) -> str:
    subject = _command(shape) or first_argument(shape.text, (*SUBJECT_ARGUMENTS, *PATH_ARGUMENTS))
    return f"{tool_name(shape.tool)}({one_line(subject or shape.text, room)})"


def _command(call: Shape) -> str | None:
    """The command that a call runs, as a text or a list of words."""
    if command := first_argument(call.text, _COMMAND_ARGUMENTS):
        return command
    with suppress(ValueError):
        match from_json(call.text):
            case {"command": [str(), str(flag), str(command)]} if flag.startswith("-"):
                return command  # bash -lc …
            case _:
                pass
    return None


def _parts(passages: Iterable[Passage], kind: Kind) -> Iterator[tuple[Passage, int, Shape]]:
    for passage in passages:
        for index, shape in enumerate(passage.shapes):
            if shape.kind == kind:
                yield passage, index, shape
