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
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import History
from rich.text import Text

from refold.cli.chat.clean import cleaned

PAUSE = 0.3  # seconds without a key after which a person has seen what is on the screen
_MAX_HISTORY = 2_000  # texts that are kept; a file with twice as many is shortened

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

    def transcript(self, answer: str | None) -> Text:
        """What stays on the screen when the question is over."""
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


class TypedHistory(History):
    """Earlier input, in a file that only its owner can read; text after a space is not kept.

    Without a readable and writable file, nothing is kept.
    """

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self._path = path

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
        return texts

    def _write(self, texts: list[str], how: int) -> None:
        if self._path is None:
            return
        data = "".join(f"{json.dumps(text)}\n" for text in texts).encode()
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
    """

    def __init__(self, on_read: Callable[[str], None]) -> None:
        self._on_read = on_read
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
        reader.set_result(line)
