"""A scripted model that finishes a task or doesn't, by what its requests show.

It has no memory of its own: whatever it answers with, it read in the request it was sent, on a line
that has all the words it looks for and something of the right form. Of several such lines the last
counts, and what a line calls former (`not 30 days`, `before: 30 days`) doesn't. Where it is shown
an outdated value and not the newer one, it answers with the outdated one, as a model would.

What it isn't shown it looks for with the recall tools, if its request offers them, or by reading a
file again whose name is shown. It looks for nothing where the user's words don't tell that there is
something to look for: a forgotten rule is broken. After `MAX_LOOKUPS` it gives up.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from benchmarks.task_facts import Question
from refold.lab import Reader
from refold.transcripts import messages as make

MAX_LOOKUPS: Final = 4
"""Requests that it spends on looking for one thing."""
_BEFORE, _AFTER = 260, 160  # characters around a value in which its words must be
_FORMER: Final = re.compile(
    r"(?:\bnot|\bwas|\bbefore:?|\binstead of|\bformerly|\brather than|\bno longer|\bbut not)"
    r"(?: the| at)?\W*$",
    re.IGNORECASE,
)
_HIT: Final = re.compile(r"^\W*\[(\d+)\] (\w+):")
_PLAN: Final = "in this order"
_ITEM: Final = re.compile(r"[a-z]+-[a-z]+-\d+")


class Call(NamedTuple):
    """What the model does next."""

    tool: str
    arguments: dict[str, str]
    final: bool = False
    """Whether it is the answer."""


class Tried(NamedTuple):
    """What it did for this question, which its request shows it as its own last calls."""

    call: Call
    result: str


class Model:
    """Reads requests. It keeps nothing between them but what it has parsed once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def answer(
        self, view: Sequence[bytes], question: Question, tried: Sequence[Tried], *, recall: bool
    ) -> Call | None:
        """The next call: with the answer, or to look for it. None: it gives up."""
        lines = [line for payload in view for line in self._lines(payload)]
        refused = {each.call.arguments["value"] for each in tried if each.call.final}
        if question.done:
            found = _next_item(lines, question, looked=bool(tried) or not recall)
        else:
            found = _newest(lines, question)
        if found and found not in refused:
            return Call(question.tool, {"value": found}, final=True)
        if not question.known or len(tried) >= MAX_LOOKUPS:
            return None
        calls = [each.call for each in tried]
        lookups = _lookups(lines, question, tried, recall=recall)
        return next((call for call in lookups if call not in calls), None)

    def _lines(self, payload: bytes) -> list[str]:
        return _in_order(self._reader.read(payload).text)


@lru_cache(maxsize=100_000)
def _in_order(text: str) -> list[str]:
    """The lines of a message; of matches that recall found, the newest entry comes last."""
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if _HIT.match(line)), None)
    if first is None:
        return lines
    blocks: list[tuple[int, list[str]]] = []
    for line in lines[first:]:
        hit = _HIT.match(line)
        if hit:
            blocks.append((int(hit[1]), []))
        blocks[-1][1].append(line)
    blocks.sort(key=lambda block: block[0])
    return [*lines[:first], *(line for _, block in blocks for line in block)]


def _newest(lines: Sequence[str], question: Question) -> str:
    """The newest value on a line that has all the words."""
    found = ""
    for line in lines:
        lower = line.lower()
        if all(word.lower() in lower for word in question.words):
            found = _nearest(line, question) or found
    return found


def _nearest(line: str, question: Question) -> str:
    """The value that is nearest to what the question is about, with all words around it."""
    name = question.words[0].lower()
    best, distance = "", len(line) + 1
    for match in re.finditer(question.shape, line):
        start = max(0, match.start() - _BEFORE)
        around = line[start : match.end(1) + _AFTER].lower()
        if not all(word.lower() in around for word in question.words):
            continue
        if _FORMER.search(line[: match.start(1)]):
            continue
        places = [each.start() for each in re.finditer(re.escape(name), line.lower())]
        away = min(abs(match.start(1) - place) for place in places)
        if away <= distance:
            best, distance = match[1].strip(), away
    return best


def _next_item(lines: Sequence[str], question: Question, *, looked: bool) -> str:
    """The item of the newest plan after the last one that is shown as finished.

    Where none is shown as finished, it is the first, if there is nowhere else to look.
    """
    items = _ITEM.findall(_newest(lines, question))
    marks = re.compile(rf"\b(?:{question.done}|{question.tool}|done|finished)\b", re.IGNORECASE)
    reports = [line for line in lines if _PLAN not in line and marks.search(line)]
    finished = [index for index, item in enumerate(items) if any(item in line for line in reports)]
    if not finished:
        return items[0] if items and looked else ""
    return items[finished[-1] + 1] if finished[-1] + 1 < len(items) else ""


def _lookups(
    lines: Sequence[str], question: Question, tried: Sequence[Tried], *, recall: bool
) -> Iterator[Call]:
    """The ways there are to find out, the best first."""
    if question.source:
        for line in reversed(lines):
            if match := re.search(question.source, line):
                yield Call(question.reader, {"name": match[1]})
                break
    if not recall:
        return
    first = (question.done, question.words[0]) if question.done else question.words
    yield Call("recall_search", {"query": " ".join(first)})
    for each in tried:
        if each.call.tool == "recall_search":
            for line in each.result.split("\n"):
                if hit := _HIT.match(line):
                    yield Call("recall_read", {"at": hit[1]})
    yield Call("recall_search", {"query": question.words[0]})


def as_message(text: str, call: Call, number: int) -> bytes:
    parts = [make.text(text), make.tool_call(call.tool, f"q{number}", json.dumps(call.arguments))]
    return make.response(parts)
