"""The breadcrumb: a summary from the log alone, without a model.

It quotes and counts and says nothing of its own: the user's messages, the names in use, the files
that were changed, errors and what came of them, calls without an answer, where things stood, and
what the model said it would do next. What it quotes can be false or out of date, and what it leaves
out can matter.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from refold.fold.ledger import ledger
from refold.fold.material import Earlier, Material, Passage
from refold.fold.quoting import clipped, one_line
from refold.fold.reads import CHANGING, PATHS, TELLING, given, reads_of
from refold.fold.rules import least_missed
from refold.fold.summary import HAND, Claim, Directive, Section, Summary
from refold.log import PartRef
from refold.view.framing import tool_name
from refold.wire import Shape
from refold.wire.harness import users_words

BY = "breadcrumb"
EARLIER = "From an earlier summary"
CHANGED = "Files changed"
ERRORS = "Errors and what came of them"
OPEN = "Calls without an answer"
RESULTS = "Large results, which are left out here"
STATE = "Where it stood"
NEXT = "Next, in the model's words"

_MOST_DIRECTIVES = 100
_MOST_EARLIER = 3
_MOST_ERRORS = 6
_MOST_FILES = 15
_MOST_RESULTS = 8
_LARGE = 2_000  # characters
_LAST_CALLS = 4
_RECENT = 3_000  # messages among which errors and changes are worth telling
_LINE = 160
_LAST_WORDS = 600
_TITLE = 60
_SEARCHED = 20_000  # characters of a result in which an error is looked for
_QUOTED_CHARS = 4_000  # more than is shown of a message, far less than a pasted file
_ERROR = re.compile(  # at the beginning of a line: a program's complaint, not its source
    r"^(?:\S{1,40}: )?(?:\w*(?:Error|Exception)\b|error\b|fatal\b|panic\b|Traceback\b|FAILED\b"
    r"|failed\b|npm ERR|.{0,60}(?:No such file|Permission denied|command not found)"
    r"|(?:Command |Process )?exit(?:ed)? (?:with )?(?:code|status) [1-9]).*$",
    re.IGNORECASE | re.MULTILINE,
)
_INTENT = re.compile(
    r"\b(?:next|now|then|let me|i'll|i will|todo|remaining|still)\b", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[.!?:])\s+")


def breadcrumb(material: Material) -> Summary:
    """What the log says of the material."""
    passages = [one for one in material.passages if one.role != "system"]
    own = [one for one in passages if not one.delegated]
    directives = _in_order(
        (*(each for one in material.earlier for each in one.summary.directives), *_directives(own))
    )
    return Summary(
        BY,
        title=_title(directives),
        sections=tuple(_sections(own[-_RECENT:], material.earlier)),
        directives=_kept(directives),
        omitted=sum(one.summary.omitted for one in material.earlier)
        + max(0, len(directives) - _MOST_DIRECTIVES),
        ledger=ledger(passages, material.earlier),
        messages=material.messages,
    )


def _directives(passages: Iterable[Passage]) -> Iterator[Directive]:
    for passage in passages:
        for nth, shape in enumerate(passage.shapes):
            # What an agent's harness put into the user's message is not the user's.
            words = users_words(shape.text) if shape.kind == "prompt" else ""
            if words:
                yield Directive(clipped(words, _QUOTED_CHARS), passage.ref(nth), len(words))


def _in_order(directives: Iterable[Directive]) -> tuple[Directive, ...]:
    """Each once: a message that was opened again is in the earlier summary too."""
    once = {one.source: one for one in directives}
    return tuple(once[source] for source in sorted(once))


def _kept(directives: Sequence[Directive]) -> tuple[Directive, ...]:
    order = least_missed([one.text for one in directives])
    return tuple(directives[at] for at in sorted(order[-_MOST_DIRECTIVES:]))


def _title(directives: Sequence[Directive]) -> str:
    """The newest thing the user asked for."""
    return one_line(directives[-1].text, _TITLE) if directives else ""


def _sections(passages: Sequence[Passage], earlier: Sequence[Earlier]) -> Iterator[Section]:
    before = {
        heading: [claim for one in earlier for claim in one.summary.section(heading)]
        for heading in (EARLIER, CHANGED, ERRORS, RESULTS)
    }
    found = (
        (EARLIER, _newest([*before[EARLIER], *_words(earlier)], _MOST_EARLIER)),
        (CHANGED, _newest([*before[CHANGED], *_changed(passages)], _MOST_FILES)),
        (ERRORS, _newest([*before[ERRORS], *_errors(passages)], _MOST_ERRORS)),
        (OPEN, _open(passages)),
        (RESULTS, _newest([*before[RESULTS], *results(passages)], _MOST_RESULTS)),
        (STATE, _state(passages)),
        (NEXT, _next(passages)),
    )
    return (Section(heading, tuple(claims)) for heading, claims in found if claims)


def _words(earlier: Iterable[Earlier]) -> Iterator[Claim]:
    """What a model or a person wrote of what was folded before."""
    for one in earlier:
        words = one.summary.words or (one.summary.text if one.summary.by == HAND else "")
        if words.strip():
            yield Claim(clipped(words, _QUOTED_CHARS), (PartRef(one.seq, 0),))


def _newest(claims: Iterable[Claim], most: int) -> list[Claim]:
    """The last claims, each text once, where it was said last."""
    once = {claim.text: claim for claim in claims}
    order = list(dict.fromkeys(claim.text for claim in reversed(list(claims))))
    return [once[text] for text in reversed(order[:most])]


def _changed(passages: Iterable[Passage]) -> Iterator[Claim]:
    for passage, nth, shape in _parts(passages, "call"):
        path = given(shape.text, PATHS) if CHANGING.search(shape.tool or "") else None
        if path:
            yield Claim(one_line(path, _LINE), (passage.ref(nth),))


def _errors(passages: Sequence[Passage]) -> Iterator[Claim]:
    calls = {shape.call: shape for _, _, shape in _parts(passages, "call")}
    worked: dict[str, int] = {}
    found: list[tuple[str, str, PartRef]] = []
    for passage, nth, shape in _parts(passages, "return"):
        call = _called(calls.get(shape.call, shape._replace(text="")))
        error = _ERROR.search(shape.text[:_SEARCHED])
        if error:
            found.append((call, one_line(error.group(), _LINE), passage.ref(nth)))
        else:
            worked[call] = passage.seq
    for call, error, ref in found:
        later = " (the same call worked later)" if worked.get(call, 0) > ref.seq else ""
        yield Claim(f'The tool {call} returned: "{error}"{later}', (ref,))


def results(passages: Sequence[Passage]) -> Iterator[Claim]:
    """Large results, each with the reference by which recall reads it."""
    calls = {shape.call: shape for _, _, shape in _parts(passages, "call")}
    for passage, nth, shape in _parts(passages, "return"):
        if len(shape.text) > _LARGE:
            called = _called(calls.get(shape.call, shape._replace(text="")))
            mark = f"[…archived: {len(shape.text)} chars, part {passage.seq}.{nth}]"
            yield Claim(f"{called} {mark}", (passage.ref(nth),))


def with_results(summary: Summary, material: Material) -> Summary:
    """A summary, whoever wrote it, with the large results it stands for named.

    It remembers what was read as well, so that reading it again is noticed.
    """
    summary = replace(summary, reads=reads_of(material))
    found = _newest([*results(material.passages)], _MOST_RESULTS)
    if summary.section(RESULTS) or not found:
        return summary
    return replace(summary, sections=(*summary.sections, Section(RESULTS, tuple(found))))


def _open(passages: Sequence[Passage]) -> list[Claim]:
    answered = {shape.call for _, _, shape in _parts(passages, "return")}
    return [
        Claim(_called(shape), (passage.ref(nth),))
        for passage, nth, shape in _parts(passages, "call")
        if shape.call not in answered
    ]


def _state(passages: Sequence[Passage]) -> list[Claim]:
    calls = list(_parts(passages, "call"))[-_LAST_CALLS:]
    claims = [
        Claim(f"The model called {_called(shape)}", (passage.ref(nth),))
        for passage, nth, shape in calls
    ]
    last = _last_words(passages)
    if last:
        text, ref = last
        claims.append(Claim(f'The model last said: "{one_line(text, _LAST_WORDS)}"', (ref,)))
    return claims


def _next(passages: Sequence[Passage]) -> list[Claim]:
    last = _last_words(passages)
    if last is None:
        return []
    text, ref = last
    meant = [one for one in _SENTENCE.split(" ".join(text.split())) if _INTENT.search(one)]
    return [Claim(f'"{one_line(meant[-1], 2 * _LINE)}"', (ref,))] if meant else []


def _last_words(passages: Sequence[Passage]) -> tuple[str, PartRef] | None:
    for passage in reversed(passages):
        for nth, shape in reversed(list(enumerate(passage.shapes))):
            if shape.kind == "text" and shape.text.strip():
                return shape.text, passage.ref(nth)
    return None


def _called(shape: Shape) -> str:
    told = given(shape.text, (*TELLING, *PATHS)) or shape.text
    return f"{tool_name(shape.tool)}({one_line(told, _LINE // 2)})"


def _parts(passages: Iterable[Passage], kind: str) -> Iterator[tuple[Passage, int, Shape]]:
    for passage in passages:
        for nth, shape in enumerate(passage.shapes):
            if shape.kind == kind:
                yield passage, nth, shape
