"""The extractive summary: from the log alone, without a model.

It only quotes and counts: the user's messages, the names in use, the files that were changed,
errors and their outcome, calls without an answer, the state of the work, and what the model said it
would do next. A quote can be false or out of date, and what is left out can matter.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

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
from refold.wire import Kind, Shape
from refold.wire.fingerprint import users_words

Find = Callable[[str], list[str]]
"""Finds the identifiers of a text, each as often as it occurs."""
Rules = Callable[[str], list[str]]
"""Finds the rules in a text."""

BY = "breadcrumb"  # stored in logs
EARLIER = "From an earlier summary"
CHANGED = "Files changed"
ERRORS = "Errors and what came of them"
OPEN = "Calls without an answer"
RESULTS = "Large results, which are left out here"
STATE = "Where it stood"
NEXT = "Next, in the model's words"

MAX_NAMES = 1_000
"""How many names a fold stores; far fewer are shown."""
MAX_NAME = 120
"""Characters of a name. A tool could return a longer one that is a text without spaces."""
_MIN_NAME = 4
_HALF_LIFE = 300  # messages
_FADED = 10 * _HALF_LIFE
_SAID_WEIGHT, _RETURNED_WEIGHT = 4.0, 1.0

_MAX_DIRECTIVES = 100
_MAX_EARLIER = 3
_MAX_ERRORS = 6
_MAX_FILES = 15
_MAX_RESULTS = 8
_LARGE = 2_000  # characters
_LAST_CALLS = 4
_RECENT = 3_000  # messages whose errors and changes are still of interest
_LINE = 160
_LAST_WORDS = 600
_TITLE = 60
_MAX_SEARCHED = 20_000  # characters of a result in which an error is looked for
_MAX_QUOTE = 4_000  # more than is shown of a message, far less than a pasted file
_MAX_RULES_TEXT = 4_000  # characters of a message in which rules are looked for
_MAX_RULE = 300  # characters of a sentence; a longer one is a pasted text

# Which words count as identifiers was chosen so that LR-UIR reproduces the shares that were
# measured earlier for the comparison policies. Use it to compare policies; its absolute value
# depends on this choice.
_IDENTIFIERS = tuple(
    re.compile(kind)
    for kind in (
        # src/app/main.ts, with a lookbehind that keeps long lines from taking forever
        r"(?<![\w.@~-])(?:(?<!/)[\w.@~-]+)?(?:/[\w.@~-]+)*/[\w.@~-]*\w",
        r"(?<![\w/.-])[\w-]+\.(?:[jt]sx?|jsonl?|md|py|sh|txt|html|css|ya?ml|toml)\b",  # main.ts
        r"\b[A-Za-z]*[a-z0-9][A-Z]\w*\b",  # renderFrame, TextEditor
        r"\b[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+\b",  # max_tokens
        r"\b\d{4,}\b",  # 2048
        r"\b(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{5,}\b",  # HAT045
        r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b",  # 603f272
    )
)
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
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")  # noqa: RUF001 - signs of other scripts
_ERROR = re.compile(  # at the beginning of a line: a program's complaint, not its source
    r"^(?:\S{1,40}: )?(?:\w*(?:Error|Exception)\b|error\b|fatal\b|panic\b|Traceback\b|FAILED\b"
    r"|failed\b|npm ERR|.{0,60}(?:No such file|Permission denied|command not found)"
    r"|(?:Command |Process )?exit(?:ed)? (?:with )?(?:code|status) [1-9]).*$",
    re.IGNORECASE | re.MULTILINE,
)
_INTENT = re.compile(
    r"\b(?:next|now|then|let me|i'll|i will|todo|remaining|still)\b", re.IGNORECASE
)
_CLAUSE_END = re.compile(r"(?<=[.!?:])\s+")


def extractive_summary(material: Material) -> Summary:
    """Summarize the material from the log alone."""
    passages = [passage for passage in material.passages if passage.role != "system"]
    own = [passage for passage in passages if not passage.delegated]
    # A message that was unfolded is in the earlier summary too.
    earlier = (one for fold in material.earlier for one in fold.summary.directives)
    by_source = {directive.source: directive for directive in (*earlier, *_directives(own))}
    directives = [by_source[source] for source in sorted(by_source)]
    order = least_missed([directive.text for directive in directives])
    return Summary(
        BY,
        title=one_line(directives[-1].text, _TITLE) if directives else "",
        sections=tuple(_sections(own[-_RECENT:], material.earlier)),
        directives=tuple(directives[index] for index in sorted(order[-_MAX_DIRECTIVES:])),
        omitted=sum(fold.summary.omitted for fold in material.earlier)
        + max(0, len(directives) - _MAX_DIRECTIVES),
        ledger=ledger(passages, material.earlier),
        messages=material.messages,
    )


def with_results(summary: Summary, material: Material) -> Summary:
    """Add references to large results to any summary, and the reads that rereads are noticed by."""
    summary = replace(summary, reads=reads_of(material))
    found = _last_unique([*_results(material.passages)], _MAX_RESULTS)
    if summary.section(RESULTS) or not found:
        return summary
    return replace(summary, sections=(*summary.sections, Section(RESULTS, tuple(found))))


def identifiers(text: str) -> list[str]:
    """Paths, file names, names in camel or snake case, long numbers, codes and hex ids."""
    return [name for kind in _IDENTIFIERS for name in kind.findall(text) if len(name) >= _MIN_NAME]


def strings(value: JsonValue, *, keys: bool = True) -> Iterator[str]:
    """The texts of a JSON value, such as a call's arguments."""
    if isinstance(value, list):
        for item in value:
            yield from strings(item, keys=keys)
    elif isinstance(value, dict):
        for key, item in value.items():
            if keys:
                yield key
            yield from strings(item, keys=keys)
    elif value is not None:
        yield str(value)


def ledger(passages: Sequence[Passage], earlier: Sequence[Earlier] = ()) -> tuple[Name, ...]:
    """The names of these messages and of earlier folds, the most likely to be needed again first.

    A name weighs more the more messages it is in, the newer they are, and if the user or the model
    wrote it rather than a tool. The weights of earlier folds fade as messages go by, so merging a
    fold is the same as reading its messages again.
    """
    names: dict[str, Name] = {}

    def add(name: str, weight: float, last: int, *, by_tools: bool) -> None:
        before = names.get(name)
        if before is not None:
            weight += before.weight
            last = max(last, before.last)
            by_tools = by_tools and before.by_tools
        names[name] = Name(name, weight, last, by_tools)

    def fade(newer: int, seq: int) -> float:
        folded = sum(fold.summary.messages for fold in earlier if fold.last > seq)
        return 0.5 ** ((newer + folded) / _HALF_LIFE)

    for fold in earlier:
        factor = fade(sum(passage.seq > fold.last for passage in passages), fold.last)
        for name, weight, last, by_tools in fold.summary.ledger:
            add(name, weight * factor, last, by_tools=by_tools)
    for newer, passage in enumerate(reversed(passages)):
        if newer >= _FADED and len(names) >= MAX_NAMES:
            break  # older names weigh next to nothing
        factor = fade(newer, passage.seq)
        for name, weight in _weights(passage).items():
            add(name, weight * factor, passage.seq, by_tools=weight == _RETURNED_WEIGHT)
    rounded = (name._replace(weight=round(name.weight, 4)) for name in names.values())
    return tuple(sorted(rounded, key=lambda name: (-name.weight, name.name))[:MAX_NAMES])


def _weights(passage: Passage) -> dict[str, float]:
    weights: dict[str, float] = {}
    for shape in passage.shapes:
        text = shape.text
        if shape.kind == "prompt":
            text = users_words(text)
        elif shape.kind == "call":  # only the values: the tool chose the arguments' names
            with suppress(ValueError):
                text = "\n".join(strings(from_json(text), keys=False))
        said = shape.kind in ("prompt", "text", "call", "thought") and not passage.delegated
        weight = _SAID_WEIGHT if said else _RETURNED_WEIGHT
        for name in identifiers(text):
            if len(name) <= MAX_NAME:
                weights[name] = max(weight, weights.get(name, 0))
    return weights


def fitting(names: Iterable[Name], counter: Counter, tokens: int, text: str = "") -> list[Name]:
    """As many of the names as fit, without those that are in the text already."""
    present = {*identifiers(text)}
    chosen: list[Name] = []
    for name in names:
        if name.name in present:
            continue
        tokens -= counter.text(f"{name.name}\n")
        if tokens < 0:
            break
        chosen.append(name)
    return chosen


def rules_in(text: str) -> list[str]:
    """The sentences of a message that sound like standing rules, such as "never push to main"."""
    text = text[:_MAX_RULES_TEXT]
    if not _STANDING.search(text):
        return []
    sentences = (sentence.strip() for sentence in _SENTENCE_END.split(text))
    return [one for one in sentences if 0 < len(one) <= _MAX_RULE and _STANDING.search(one)]


def least_missed(texts: Sequence[str], rules: Rules = rules_in) -> list[int]:
    """The messages in the order in which to drop them: the oldest first, those with rules last."""
    last = len(texts) - 1  # the newest message is what is being worked on
    return sorted(range(len(texts)), key=lambda i: (bool(rules(texts[i])) or i == last, i))


def _directives(passages: Iterable[Passage]) -> Iterator[Directive]:
    for passage, index, shape in _parts(passages, "prompt"):
        # What an agent's harness put into the user's message is not the user's.
        if words := users_words(shape.text):
            yield Directive(clipped(words, _MAX_QUOTE), passage.ref(index), len(words))


def _sections(passages: Sequence[Passage], earlier: Sequence[Earlier]) -> Iterator[Section]:
    def merged(heading: str, claims: Iterable[Claim], limit: int) -> list[Claim]:
        before = (claim for fold in earlier for claim in fold.summary.section(heading))
        return _last_unique([*before, *claims], limit)

    sections = (
        (EARLIER, merged(EARLIER, _earlier_words(earlier), _MAX_EARLIER)),
        (CHANGED, merged(CHANGED, _changed_files(passages), _MAX_FILES)),
        (ERRORS, merged(ERRORS, _errors(passages), _MAX_ERRORS)),
        (OPEN, _open_calls(passages)),
        (RESULTS, merged(RESULTS, _results(passages), _MAX_RESULTS)),
        (STATE, _state(passages)),
        (NEXT, _next(passages)),
    )
    return (Section(heading, tuple(claims)) for heading, claims in sections if claims)


def _last_unique(claims: Sequence[Claim], limit: int) -> list[Claim]:
    """The last claims, each text once, at its last occurrence."""
    unique: dict[str, Claim] = {}
    for claim in reversed(claims):
        unique.setdefault(claim.text, claim)
    return [*unique.values()][:limit][::-1]


def _earlier_words(earlier: Iterable[Earlier]) -> Iterator[Claim]:
    for fold in earlier:
        summary = fold.summary
        words = summary.words or (summary.text if summary.by == HAND else "")
        if words.strip():
            yield Claim(clipped(words, _MAX_QUOTE), (PartRef(fold.seq, 0),))


def _changed_files(passages: Iterable[Passage]) -> Iterator[Claim]:
    for passage, index, shape in _parts(passages, "call"):
        changes = CHANGING.search(shape.tool or "")
        path = first_argument(shape.text, PATH_ARGUMENTS) if changes else None
        if path:
            yield Claim(one_line(path, _LINE), (passage.ref(index),))


def _errors(passages: Sequence[Passage]) -> Iterator[Claim]:
    last_success: dict[str, int] = {}
    errors: list[tuple[str, str, PartRef]] = []
    for call, ref, result in _returns(passages):
        error = _ERROR.search(result[:_MAX_SEARCHED])
        if error:
            errors.append((call, one_line(error.group(), _LINE), ref))
        else:
            last_success[call] = ref.seq
    for call, error, ref in errors:
        later = " (the same call worked later)" if last_success.get(call, 0) > ref.seq else ""
        yield Claim(f'The tool {call} returned: "{error}"{later}', (ref,))


def _results(passages: Sequence[Passage]) -> Iterator[Claim]:
    """Large results, each with the reference by which recall reads it."""
    for call, ref, result in _returns(passages):
        if len(result) > _LARGE:
            mark = f"[…archived: {len(result)} chars, part {ref.seq}.{ref.index}]"
            yield Claim(f"{call} {mark}", (ref,))


def _open_calls(passages: Sequence[Passage]) -> list[Claim]:
    answered = {shape.call for _, _, shape in _parts(passages, "return")}
    return [
        Claim(_call_text(shape), (passage.ref(index),))
        for passage, index, shape in _parts(passages, "call")
        if shape.call not in answered
    ]


def _state(passages: Sequence[Passage]) -> list[Claim]:
    claims = [
        Claim(f"The model called {_call_text(shape)}", (passage.ref(index),))
        for passage, index, shape in list(_parts(passages, "call"))[-_LAST_CALLS:]
    ]
    if last := _last_words(passages):
        text = one_line(last.text, _LAST_WORDS)
        claims.append(Claim(f'The model last said: "{text}"', last.sources))
    return claims


def _next(passages: Sequence[Passage]) -> list[Claim]:
    last = _last_words(passages)
    if last is None:
        return []
    clauses = _CLAUSE_END.split(" ".join(last.text.split()))
    plans = [clause for clause in clauses if _INTENT.search(clause)]
    return [Claim(f'"{one_line(plans[-1], 2 * _LINE)}"', last.sources)] if plans else []


def _last_words(passages: Sequence[Passage]) -> Claim | None:
    for passage in reversed(passages):
        for index, shape in reversed(list(enumerate(passage.shapes))):
            if shape.kind == "text" and shape.text.strip():
                return Claim(shape.text, (passage.ref(index),))
    return None


def _returns(passages: Sequence[Passage]) -> Iterator[tuple[str, PartRef, str]]:
    """Each result: the call that it answers, where it is, and its text."""
    calls = {shape.call: shape for _, _, shape in _parts(passages, "call")}
    for passage, index, shape in _parts(passages, "return"):
        call = calls.get(shape.call, shape._replace(text=""))
        yield _call_text(call), passage.ref(index), shape.text


def _call_text(shape: Shape) -> str:
    arguments = first_argument(shape.text, (*SUBJECT_ARGUMENTS, *PATH_ARGUMENTS)) or shape.text
    return f"{tool_name(shape.tool)}({one_line(arguments, _LINE // 2)})"


def _parts(passages: Iterable[Passage], kind: Kind) -> Iterator[tuple[Passage, int, Shape]]:
    for passage in passages:
        for index, shape in enumerate(passage.shapes):
            if shape.kind == kind:
                yield passage, index, shape
