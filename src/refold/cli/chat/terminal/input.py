"""A question with a few answers, and which of the typed lines is an answer to it.

A question stands above the input line, and the line stays what it is: what is typed there is a
message unless it can only be an answer. Four rules decide, and none of them guesses a meaning:

1. An answer is a whole line, sent with Enter: the answer's word or its key. No single key and no
   part of a longer line answers anything.
2. The line was begun after the question could be seen: drawn, with no key left unread at that
   moment. What was typed before that, or pasted, is a message.
3. A line in the flow of other messages is one of them: while lines wait to be sent, a line counts
   as an answer only after a pause.
4. A bare Enter takes the first answer only after a pause on a visible question, and only if nothing
   else was typed since the question came up. A key that is held down never pauses.
"""

import json
import os
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, cast

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_len
from prompt_toolkit.history import History
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from refold.cli.chat.clean import cleaned
from refold.cli.chat.surface import is_message
from refold.cli.chat.text import line_count
from refold.terminal_text import counted

if TYPE_CHECKING:  # the prompt is there before it is imported
    from rich.text import Text

PAUSE = 0.3  # seconds without a key after which a person has seen what is on the screen
_MAX_HISTORY = 2_000  # texts that are kept; a file with twice as many is shortened
_MAX_PASTED_LINES, _MAX_PASTED_CHARS = 10, 1_000  # of a paste that is shown as it is
_FIRST_MARK = 0x100000  # of the last plane for private use: no font has it, so nobody types it
_MARK = re.compile("([\U00100000-\U0010fffd])")

Reader = Future[str | None]


def letters(answers: Sequence[str]) -> list[str]:
    """For each answer the key that chooses it: its first letter that no other has."""
    keys: list[str] = []
    for answer in answers:
        own = (letter for letter in answer.casefold() if letter.isalnum() and letter not in keys)
        keys.append(next(own, ""))
    return keys


def offered(answers: Sequence[str]) -> str:
    """The answers with their keys: `[Y]es / [n]o`; the default's key is a capital."""
    shown: list[str] = []
    for answer, key in zip(answers, letters(answers), strict=True):
        index = answer.casefold().find(key) if key else -1
        mark = key if shown else key.upper()
        shown.append(f"{answer[:index]}[{mark}]{answer[index + 1 :]}" if index >= 0 else answer)
    return " / ".join(shown)


def chosen(typed: str, answers: Sequence[str]) -> str | None:
    """The answer with this key or word; the first for an empty line."""
    typed = typed.strip().casefold()
    if not typed:
        return answers[0]
    for answer, key in zip(answers, letters(answers), strict=True):
        if typed in (key, answer.casefold()):
            return answer
    return None


class KeyboardPause:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._newest = self._before = float("-inf")

    def key_pressed(self, _: object = None) -> None:
        self._before, self._newest = self._newest, self.clock()

    def before_this_key(self, since: float) -> float:
        """Seconds between `since`, or a later key, and the key that is being handled."""
        return self._newest - max(since, self._before)

    def until_now(self) -> float:
        return self.clock() - self._newest


class Question:
    """A question that waits for its answer.

    Args:
        text: The question.
        answers: The possible answers; the first is the default.
        answer: Receives the answer.
        unsent: Whether there is something in the input line already.
    """

    def __init__(
        self,
        text: str,
        answers: Sequence[str],
        answer: "Future[str | None]",
        *,
        unsent: bool = False,
    ) -> None:
        self.text = text
        self.answers = answers
        self.answer = answer
        self._visible: float | None = None
        self._line_is_message = unsent
        self._line_empty = not unsent
        self._other_typed = unsent

    @property
    def line(self) -> str:
        return f"{cleaned(self.text)} {offered(self.answers)}"

    @property
    def choices(self) -> str:
        """What to type, in words: `y or n`."""
        keyed = zip(letters(self.answers), self.answers, strict=True)
        return " or ".join(key or answer for key, answer in keyed)

    def transcript(self, answer: str | None) -> "Text":
        """What stays on the screen when the question is over."""
        from rich.text import Text  # noqa: PLC0415 - slow

        return Text.assemble((f"{cleaned(self.text)} ", "dim"), answer or "–")  # noqa: RUF001

    def drawn(self, now: float) -> None:
        """It is on the screen, and no key is left unread that was typed before."""
        if self._visible is None:
            self._visible = now

    def line_changed(self, line: str, pause: float, *, queued: bool) -> None:
        if self._line_empty and line:
            in_flow = queued and pause < PAUSE
            self._line_is_message = self._visible is None or in_flow
        self._line_empty = not line
        self._other_typed |= bool(line) and self._line_is_message

    def pasted(self) -> None:
        """The content of the line was pasted, not typed."""
        self._line_is_message = self._other_typed = True
        self._line_empty = False

    def answer_in(self, line: str, pause: Callable[[float], float]) -> str | None:
        """The answer in a sent line; None if it is a message, or a hasty Enter."""
        self._line_empty = True
        if line.strip():
            is_message = self._line_is_message or "\n" in line
            answer = None if is_message else chosen(line, self.answers)
            self._other_typed |= answer is None
            return answer
        if self._visible is None or self._other_typed or pause(self._visible) < PAUSE:
            return None
        return self.answers[0]


class Pastes:
    """Long pasted texts. In the input line each is one character, drawn as a label."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._marks: dict[str, str] = {}

    def collapse(self, text: str) -> str:
        """The text itself if it is short, else the character that stands for it."""
        is_short = line_count(text) <= _MAX_PASTED_LINES and len(text) <= _MAX_PASTED_CHARS
        return text if is_short and not _MARK.search(text) else self.mark(text)

    def mark(self, text: str) -> str:
        mark = self._marks.setdefault(text, chr(_FIRST_MARK + len(self._marks)))
        self._texts[mark] = text
        return mark

    def marked(self, text: str) -> str:
        """The text with everything in it that was pasted collapsed again."""
        for pasted, mark in self._marks.items():
            text = text.replace(pasted, mark)
        return text

    def whole(self, line: str) -> str:
        return _MARK.sub(lambda match: self._texts.get(match[0], match[0]), line)

    def labeled(self, line: str) -> str:
        return _MARK.sub(lambda match: self.label(match[0]), line)

    def label(self, mark: str) -> str:
        text = self._texts.get(mark, mark)
        lines = line_count(text)
        size = counted(lines, "line") if lines > 1 else counted(len(text), "character")
        return f"[Pasted text, {size}]"

    def parts(self, line: str) -> list[str]:
        """What was typed and what was pasted, by turns."""
        return [self._texts.get(part, part) for part in _MARK.split(line)]


class PasteLabels(Processor):
    """Draws the label of a paste in the place of its character."""

    def __init__(self, pastes: Pastes) -> None:
        self._pastes = pastes

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        if not any(_MARK.search(text) for _, text, *_ in fragments):
            return Transformation(fragments)
        drawn: StyleAndTextTuples = []
        starts: list[int] = []  # for each character of the input, the column it is drawn in
        for style, text, *_ in explode_text_fragments(fragments):
            starts.append(fragment_list_len(drawn))
            is_mark = _MARK.fullmatch(text)
            drawn.append((f"{style} dim", self._pastes.label(text)) if is_mark else (style, text))
        end, total = fragment_list_len(drawn), len(starts)

        def to_display(index: int) -> int:
            return starts[index] if index < total else end + index - total

        def to_source(column: int) -> int:
            if column >= end:
                return total + column - end
            return bisect_right(starts, column) - 1

        return Transformation(drawn, to_display, to_source)


class TypedHistory(History):
    """Earlier input, in a file that only its owner can read; text after a space is not kept.

    Without a readable and writable file, nothing is kept.
    """

    def __init__(self, path: Path | None, pastes: Pastes | None = None) -> None:
        super().__init__()
        self._path = path
        self._pastes = pastes or Pastes()

    def load_history_strings(self) -> Iterable[str]:
        texts = self._read()
        if len(texts) > 2 * _MAX_HISTORY:
            texts = texts[-_MAX_HISTORY:]
            self._write(texts, os.O_TRUNC)
        return reversed(texts[-_MAX_HISTORY:])

    def store_string(self, string: str) -> None:
        self._write([string], os.O_APPEND)

    def keep(self, text: str) -> None:
        """Keep a text unless it begins with a space or repeats the last one."""
        if not text.startswith(" ") and text != (self.get_strings() or [""])[-1]:
            self.append_string(text)

    def _read(self) -> list[str]:
        if self._path is None:
            return []
        try:
            lines = self._path.read_text("utf-8", "replace").splitlines()
        except OSError:
            return []
        texts: list[str] = []
        for line in lines:
            with suppress(ValueError):
                value: object = json.loads(line)
                if isinstance(value, str) and value:
                    texts.append(value)
                elif isinstance(value, list):
                    parts = [part for part in cast("list[object]", value) if isinstance(part, str)]
                    parts[1::2] = map(self._pastes.mark, parts[1::2])
                    texts += ["".join(parts)] if any(parts) else []
        return texts

    def _write(self, texts: list[str], how: int) -> None:
        if self._path is None:
            return
        lines = map(self._pastes.parts, texts)
        data = "".join(f"{json.dumps(x if len(x) > 1 else x[0])}\n" for x in lines).encode()
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | how, 0o600)
            try:
                os.write(file, data)
            finally:
                os.close(file)
        except OSError:
            self._path = None


class TypedLines:
    """Gives each line to the reader that waits; without one, the line is queued.

    Args:
        on_read: Called with each line when it is read.
        pastes: What was pasted; a reader gets it whole.
    """

    def __init__(self, on_read: Callable[[str], None], pastes: Pastes) -> None:
        self._on_read = on_read
        self._pastes = pastes
        self._reader: Reader | None = None
        self.queued: list[str] = []
        self.over = False  # whether the person has left

    def want(self, reader: Reader) -> None:
        self._reader = reader
        self._give()

    def add(self, line: str) -> None:
        self.queued.append(line)
        self._give()

    def take_back(self) -> str:
        """The newest queued line, to be edited."""
        return self.queued.pop() if self.queued else ""

    def take_messages(self) -> list[str]:
        """The queued lines up to a command; they count as read."""
        lines = [*takewhile(is_message, map(self._pastes.whole, self.queued))]
        for line in self.queued[: len(lines)]:
            self._on_read(line)
        del self.queued[: len(lines)]
        return lines

    def leave(self) -> None:
        self.over = True
        self._give()

    def _give(self) -> None:
        reader = self._reader
        if reader is None or not (self.queued or self.over):
            return
        self._reader = None
        if not reader.set_running_or_notify_cancel():
            return
        line = None if self.over else self.queued.pop(0)
        if line is not None:
            self._on_read(line)
            line = self._pastes.whole(line)
        reader.set_result(line)
