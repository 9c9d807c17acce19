"""What a model used again after a long while, and whether it was still shown it.

Names in a fold are found by `refold.fold.identifiers`, and counting what is kept by the same
function would favor the folds. So three other things are counted too: names by a definition that no
fold uses, the old text of edits, and long lines. Each counts where the assistant wrote it and no
message of the last `gap` tokens had it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue

from refold.fold.identifiers import identifiers, strings
from refold.lab.messages import Call, Reader
from refold.lab.metrics import Share
from refold.lab.replay import Replay
from refold.transcripts.recording import Recording

Kind = Literal["other names", "edits", "lines"]
KINDS: Final[tuple[Kind, ...]] = ("other names", "edits", "lines")

MIN_NAME, MIN_EDIT, MIN_LINE = 5, 12, 60
"""Characters: what is shorter is found by chance."""
_OTHER_NAMES = tuple(
    re.compile(kind)
    for kind in (
        r"(?<![\w-])--[a-z][a-z0-9]*(?:-[a-z0-9]+)*",  # --no-verify
        r"(?<![\w./-])[a-z][a-z0-9]*(?:-[a-z0-9]+){2,}(?![\w-])",  # oh-my-posh
        r"(?<![\w./-])(?=[a-z-]*\d)[a-z][a-z0-9]*-[a-z0-9]+(?![\w-])",  # phase-14
        r"(?<![\w./-])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+",  # os.path.join, main.go
        r"(?<![\w./-])\w+(?:-\w+)+(?:\.[A-Za-z]\w{0,9})+\b",  # font-metrics.mjs
        r"(?<![\w.])v?\d+\.\d+\.\d+(?:[-+][\w.]+)?(?!\w)",  # 1.26.0-rc.1
    )
)
_LINE_NUMBER = re.compile(r"^[ ]*\d+(?:\N{RIGHTWARDS ARROW}|\t|:|[ ]?\|[ ]?)", re.MULTILINE)
_OLD = frozenset({"old_string", "old_str", "old_text", "oldText", "oldString", "old"})
_HUNK = re.compile(r"^(?:@@.*|\*\*\* .*)$", re.MULTILINE)
_PATCH = "*** Update File:"


class Use(NamedTuple):
    """Something old that an assistant message used again."""

    at: int
    """The index of that message."""
    kind: Kind
    what: str
    source: int
    """The index of the newest message that had it."""


class Miss(NamedTuple):
    """A message whose content the model needed again and was not shown."""

    at: int
    """The index of the answer that needed it."""
    tokens: int
    """What reading it again takes."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a replay kept of each kind, and what its model would have had to read again."""

    kept: dict[Kind, Share]
    missed: tuple[Miss, ...]


class ContentMeter:
    """Measures replays; for several of one recording, one is faster than several."""

    def __init__(self, reader: Reader, gap: int) -> None:
        self._reader = reader
        self._gap = gap
        self._held: dict[bytes, _Held] = {}
        self._uses: tuple[Recording, list[Use]] | None = None

    def uses(self, recording: Recording) -> list[Use]:
        """What the assistant used again, in order."""
        if self._uses is None or self._uses[0] is not recording:
            self._uses = recording, list(self._find_uses(recording))
        return self._uses[1]

    def measure(self, replay: Replay) -> Content:
        """What was kept. Content that was missed is read again once; the next fold loses it."""
        payloads = replay.recording.payloads
        recorded = frozenset(payloads)
        uses: dict[int, list[Use]] = {}
        for use in self.uses(replay.recording):
            uses.setdefault(use.at, []).append(use)
        found, of = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
        missed: list[Miss] = []
        read_again: set[int] = set()
        sent = 0
        for request in replay.requests:
            if request.sent < sent:
                read_again.clear()
            sent = request.sent
            shown = frozenset(request.view)
            for use in uses.get(request.at, ()):
                of[use.kind] += 1
                if self._shows(shown, use, recorded):
                    found[use.kind] += 1
                elif use.kind != "other names" and use.source not in read_again:
                    read_again.add(use.source)
                    tokens = self._reader.tokens(payloads[use.source])
                    missed.append(Miss(request.at, tokens))
        return Content({kind: Share(found[kind], of[kind]) for kind in KINDS}, tuple(missed))

    def _shows(self, view: frozenset[bytes], use: Use, recorded: frozenset[bytes]) -> bool:
        for payload in view:
            held = self._hold(payload)
            # In a text that a policy wrote, a name or a line may stand in other surroundings.
            if use.kind == "edits" or payload not in recorded:
                shown = use.what in held.text
            else:
                shown = use.what in (held.lines if use.kind == "lines" else held.names)
            if shown:
                return True
        return False

    def _find_uses(self, recording: Recording) -> Iterator[Use]:
        position = 0
        positions: list[int] = []
        names, lines = dict[str, int](), dict[str, int]()
        for index, payload in enumerate(recording.payloads):
            message = self._reader.read(payload)
            held = self._hold(payload)
            if message.speaker == "assistant":
                kinds: tuple[tuple[Kind, frozenset[str], dict[str, int]], ...] = (
                    ("other names", held.names, names),
                    ("lines", held.lines, lines),
                )
                for kind, written, last in kinds:
                    for what in sorted(written):
                        source = last.get(what)
                        if source is not None and position - positions[source] > self._gap:
                            yield Use(index, kind, what, source)
                for old in dict.fromkeys(_old_texts(message.calls)):
                    source = self._newest(recording.payloads[:index], old)
                    if source is not None and position - positions[source] > self._gap:
                        yield Use(index, "edits", old, source)
            positions.append(position)
            position += message.tokens
            names.update(dict.fromkeys(held.names, index))
            lines.update(dict.fromkeys(held.lines, index))

    def _newest(self, payloads: tuple[bytes, ...], text: str) -> int | None:
        indexes = range(len(payloads) - 1, -1, -1)
        return next((i for i in indexes if text in self._hold(payloads[i]).text), None)

    def _hold(self, payload: bytes) -> "_Held":
        held = self._held.get(payload)
        if held is None:
            text = _without_numbers(self._reader.plain(payload))
            lines = frozenset(line for each in text.splitlines() if _is_long(line := each.strip()))
            held = self._held[payload] = _Held(text, frozenset(other_names(text)), lines)
        return held


class _Held(NamedTuple):
    """The content of one message."""

    text: str
    names: frozenset[str]
    lines: frozenset[str]


def other_names(text: str) -> set[str]:
    """Flags, kebab case, dotted calls, versions and files that `identifiers` does not know."""
    found = {name for kind in _OTHER_NAMES for name in kind.findall(text)}
    return {name for name in found if len(name) >= MIN_NAME}.difference(identifiers(text))


def _is_long(line: str) -> bool:
    return len(line) >= MIN_LINE


def _without_numbers(text: str) -> str:
    """The text of a file without the line numbers that tools put before its lines."""
    lines = _LINE_NUMBER.sub("", text).splitlines()
    return "\n".join(line.rstrip() for line in lines)


def _old_texts(calls: tuple[Call, ...]) -> Iterator[str]:
    """The texts that calls replace: of edits, and of each part of a patch."""
    for call in calls:
        for old in (*_old_values(call.arguments), *_patched(call.arguments)):
            text = _without_numbers(old).strip("\n")
            if len(text.strip()) >= MIN_EDIT:
                yield text


def _old_values(value: JsonValue) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _old_values(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in _OLD and isinstance(item, str):
                yield item
            else:
                yield from _old_values(item)


def _patched(value: JsonValue) -> Iterator[str]:
    for text in strings(value, keys=False):
        if _PATCH in text:
            for hunk in _HUNK.split(text):
                lines = [line for line in hunk.splitlines() if line[:1] in (" ", "-")]
                yield "\n".join(line[1:] for line in lines)
