"""The breadcrumb: a summary from the log alone, without a model.

It quotes and counts and says nothing of its own: the user's messages, the names in use, the files
that were changed, errors and what came of them, calls without an answer, where things stood, and
what the model said it would do next. What it quotes can be false or out of date, and what it leaves
out can matter.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json

from refold.fold.material import Earlier, Material, Passage
from refold.fold.summary import HAND, Claim, Directive, Name, Section, Summary, clipped, one_line
from refold.fold.watchdog import (
    CHANGING,
    PATH_ARGUMENTS,
    SUBJECT_ARGUMENTS,
    first_argument,
    reads_of,
)
from refold.log import PartRef
from refold.view import Counter
from refold.view.framing import tool_name
from refold.wire import Shape
from refold.wire.harness import users_words

# Identifiers: the words of a session that cannot be guessed, only remembered.
#
# Which words count was chosen, out of many ways to say it, so that LR-UIR gives the shares that
# were
# measured for the comparison policies before the lab was there. Use it to compare policies; its
# absolute value depends on this choice.

Find = Callable[[str], list[str]]
"""The identifiers of a text, each as often as it occurs."""

_KINDS = tuple(
    re.compile(kind)
    for kind in (
        # src/app/main.ts: looked for where one can begin, or a long line would take forever
        r"(?<![\w.@~-])(?:(?<!/)[\w.@~-]+)?(?:/[\w.@~-]+)*/[\w.@~-]*\w",
        r"(?<![\w/.-])[\w-]+\.(?:[jt]sx?|jsonl?|md|py|sh|txt|html|css|ya?ml|toml)\b",  # main.ts
        r"\b[A-Za-z]*[a-z0-9][A-Z]\w*\b",  # renderFrame, TextEditor
        r"\b[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+\b",  # max_tokens
        r"\b\d{4,}\b",  # 2048
        r"\b(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{5,}\b",  # HAT045
        r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b",  # 603f272
    )
)
_SHORTEST = 4


def identifiers(text: str) -> list[str]:
    """Paths, file names, names in camel or snake case, long numbers, codes and hex ids."""
    return [found for kind in _KINDS for found in kind.findall(text) if len(found) >= _SHORTEST]


def strings(value: JsonValue, *, keys: bool = True) -> Iterator[str]:
    """The texts of a JSON value: where to look for names in a call's arguments."""
    if isinstance(value, list):
        for one in value:
            yield from strings(one, keys=keys)
    elif isinstance(value, dict):
        for key, one in value.items():
            if keys:
                yield key
            yield from strings(one, keys=keys)
    elif value is not None:
        yield str(value)


# The ledger: the names that folded messages hold, the most likely to be needed again first.
#
# A name weighs more the more messages hold it, the newer they are, and when people or the model
# wrote
# it rather than a tool. The weights of an earlier fold fade as messages go by, so merging it is the
# same as reading its messages again.

MOST = 1_000
"""How many names a fold keeps; far fewer are shown."""
MAX_NAME = 120
"""Characters of a name. A tool could return a longer one that is a text without spaces."""
_HALF_LIFE = 300  # messages
_FADED = 10 * _HALF_LIFE
_SAID, _RETURNED = 4.0, 1.0


def ledger(passages: Sequence[Passage], earlier: Sequence[Earlier] = ()) -> tuple[Name, ...]:
    """The names of these messages and of earlier folds, the weightiest first."""
    found: dict[str, _Found] = {}
    for one in earlier:
        newer = sum(passage.seq > one.last for passage in passages)
        fade = _fading(newer + _told_since(one.last, earlier))
        for name, weight, last, by_tools in one.summary.ledger:
            _add(found, name, _Found(weight * fade, last, by_tools))
    for newer, passage in enumerate(reversed(passages)):
        if newer >= _FADED and len(found) >= MOST:
            break  # what is older weighs next to nothing, and need not be read
        fade = _fading(newer + _told_since(passage.seq, earlier))
        for name, weight in _weights(passage).items():
            _add(found, name, _Found(weight * fade, passage.seq, weight == _RETURNED))
    names = (
        Name(name, round(one.weight, 4), one.last, one.by_tools) for name, one in found.items()
    )
    return tuple(sorted(names, key=lambda one: (-one.weight, one.name))[:MOST])


def fitting(names: Iterable[Name], counter: Counter, tokens: int, said: str = "") -> list[Name]:
    """As many of the names as fit, without those that are said already."""
    there = {*identifiers(said)}
    chosen: list[Name] = []
    for one in names:
        if one.name in there:
            continue
        tokens -= counter.text(f"{one.name}\n")
        if tokens < 0:
            break
        chosen.append(one)
    return chosen


def _told_since(seq: int, earlier: Iterable[Earlier]) -> int:
    """How many messages after this entry are beneath earlier folds."""
    return sum(one.summary.messages for one in earlier if one.last > seq)


def _fading(messages: int) -> float:
    return 0.5 ** (messages / _HALF_LIFE)


def _weights(passage: Passage) -> dict[str, float]:
    weights: dict[str, float] = {}
    for shape in passage.shapes:
        said = shape.kind in ("prompt", "text", "call", "thought") and not passage.delegated
        weight = _SAID if said else _RETURNED
        names = (name for name in identifiers(_said(shape)) if len(name) <= MAX_NAME)
        for name in names:
            weights[name] = max(weight, weights.get(name, 0))
    return weights


def _said(shape: Shape) -> str:
    """The text of a part; of a call, its arguments' values: their names are the tool's."""
    if shape.kind == "prompt":
        return users_words(shape.text)
    if shape.kind != "call":
        return shape.text
    try:
        return "\n".join(strings(from_json(shape.text), keys=False))
    except ValueError:
        return shape.text


class _Found(NamedTuple):
    """What is known of a name so far."""

    weight: float = 0.0
    last: int = 0
    by_tools: bool = True


def _add(found: dict[str, _Found], name: str, more: _Found) -> None:
    before = found.get(name, _Found())
    found[name] = _Found(
        before.weight + more.weight,
        max(before.last, more.last),
        before.by_tools and more.by_tools,
    )


# Standing rules: what the user said once, and means for good.
#
# "Read part 3" is done when it is read. "Never push to main" is not: where there is no room for all
# that the user said, it is the last to go.

_STANDING: Final = re.compile(
    r"\b(?:never|always|do not|don't|dont|must(?:n't)?|only|avoid|prefer|make sure|remember to"
    r"|from now on|without asking|ask (?:me )?(?:first|before)|not allowed|you may|you can|keep"
    r"|niemals|nie|immer|nicht|kein\w*|nur|bitte keine|ab jetzt|muss|musst|darfst"
    r"|jamais|toujours|ne \w+ pas|seulement|il faut|évite\w*"
    r"|nunca|siempre|sempre|solo|só|jamás|debes?|deve|evita\w*|não"
    r"|mai|nooit|altijd|alleen|niet|никогда|всегда|нельзя|только|не)\b"
    r"|不要|不得|禁止|必须|总是|一定|只能|永远|しないで|必ず|常に|禁止|항상|절대",
    re.IGNORECASE,
)
_SENTENCE_RULES: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")  # noqa: RUF001 - signs of other scripts
_READ = 4_000  # characters of a message
_LONGEST = 300  # characters of a sentence; what is longer is a pasted text


def rules_in(text: str) -> list[str]:
    """The sentences of a message that sound as if they were meant for good."""
    if not _STANDING.search(text[:_READ]):
        return []
    sentences = (one.strip() for one in _SENTENCE_RULES.split(text[:_READ]))
    return [one for one in sentences if 0 < len(one) <= _LONGEST and _STANDING.search(one)]


Rules = Callable[[str], list[str]]
"""The rules in a text."""


def least_missed(texts: Sequence[str], rules: Rules = rules_in) -> list[int]:
    """The messages by how little they would be missed: the oldest first, those with rules last."""
    order = [(bool(rules(text)), at) for at, text in enumerate(texts)]
    newest = len(texts) - 1  # what was said last is what is being done
    return [at for _, at in sorted((ruled or at == newest, at) for ruled, at in order)]


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


def extractive_summary(material: Material) -> Summary:
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
        path = (
            first_argument(shape.text, PATH_ARGUMENTS)
            if CHANGING.search(shape.tool or "")
            else None
        )
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
    told = first_argument(shape.text, (*SUBJECT_ARGUMENTS, *PATH_ARGUMENTS)) or shape.text
    return f"{tool_name(shape.tool)}({one_line(told, _LINE // 2)})"


def _parts(passages: Iterable[Passage], kind: str) -> Iterator[tuple[Passage, int, Shape]]:
    for passage in passages:
        for nth, shape in enumerate(passage.shapes):
            if shape.kind == kind:
                yield passage, nth, shape
