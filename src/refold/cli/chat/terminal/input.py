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
from pathlib import Path

from prompt_toolkit.history import History
from rich.text import Text

from refold.cli.chat.clean import cleaned

PAUSE = 0.3
"""Seconds without a key after which a person has seen what is on the screen."""


def letters(answers: Sequence[str]) -> list[str]:
    """For each answer the key that chooses it: its first letter that no other has."""
    taken: list[str] = []
    for answer in answers:
        own = (one for one in answer.casefold() if one.isalnum() and one not in taken)
        taken.append(next(own, ""))
    return taken


def offered(answers: Sequence[str]) -> str:
    """The answers with their keys: `[Y]es / [n]o`; the default's key is a capital."""
    shown: list[str] = []
    for answer, key in zip(answers, letters(answers), strict=True):
        at = answer.casefold().find(key) if key else -1
        mark = key if shown else key.upper()
        shown.append(f"{answer[:at]}[{mark}]{answer[at + 1 :]}" if at >= 0 else answer)
    return " / ".join(shown)


def chosen(typed: str, answers: Sequence[str]) -> str | None:
    """The answer that was meant by a key, a word or nothing, which means the first."""
    typed = typed.strip().casefold()
    if not typed:
        return answers[0]
    for answer, key in zip(answers, letters(answers), strict=True):
        if typed in (key, answer.casefold()):
            return answer
    return None


class KeyboardPause:
    """Knows how long no key was pressed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._newest = self._before = float("-inf")

    def key_pressed(self, _: object = None) -> None:
        """A key is about to be handled."""
        self._before, self._newest = self._newest, self.clock()

    def before_this_key(self, since: float) -> float:
        """Seconds between `since`, or a later key, and the key that is being handled."""
        return self._newest - max(since, self._before)

    def until_now(self) -> float:
        """Seconds since the newest key."""
        return self.clock() - self._newest


class Asking:
    """A question that waits for its answer.

    Args:
        question: The question.
        answers: What may be answered; the first is the default.
        answer: Where the answer goes.
        unsent: Whether there is something in the input line already.
    """

    def __init__(
        self,
        question: str,
        answers: Sequence[str],
        answer: "Future[str | None]",
        *,
        unsent: bool = False,
    ) -> None:
        self.question = question
        self.answers = answers
        self.answer = answer
        self._visible: float | None = None
        self._line_is_message = unsent
        self._line_empty = not unsent
        self._other_typed = unsent

    @property
    def shown(self) -> str:
        """The question, on one line."""
        return f"{cleaned(self.question)} {offered(self.answers)}"

    @property
    def choices(self) -> str:
        """What to type, in words: `y or n`."""
        named = zip(letters(self.answers), self.answers, strict=True)
        return " or ".join(key or answer for key, answer in named)

    def drawn(self, now: float) -> None:
        """It is on the screen, and no key is left that was typed before."""
        if self._visible is None:
            self._visible = now

    def line_changed(self, line: str, pause: float, *, queued: bool) -> None:
        """The input line has become another."""
        if self._line_empty and line:
            in_flow = queued and pause < PAUSE
            self._line_is_message = self._visible is None or in_flow
        self._line_empty = not line
        self._other_typed |= bool(line) and self._line_is_message

    def pasted(self) -> None:
        """What is in the line was not typed."""
        self._line_is_message = self._other_typed = True
        self._line_empty = False

    def answer_in(self, line: str, pause: Callable[[float], float]) -> str | None:
        """The answer that a sent line is; None where it is a message, or a hasty Enter."""
        self._line_empty = True
        if line.strip():
            is_message = self._line_is_message or "\n" in line
            found = None if is_message else chosen(line, self.answers)
            self._other_typed |= found is None
            return found
        if self._visible is None or self._other_typed or pause(self._visible) < PAUSE:
            return None
        return self.answers[0]


def answered(asking: Asking, answer: str | None) -> Text:
    """What stays of it."""
    return Text.assemble((f"{cleaned(asking.question)} ", "dim"), answer or "–")  # noqa: RUF001


# What was typed before, kept in a file that only its owner can read.

_MOST = 2_000
"""Things remembered; a file with twice as many is shortened."""


class TypedHistory(History):
    """One line of the file for each thing typed; what begins with a space is not kept.

    A file that cannot be read or written is no reason to stop: then nothing is kept.
    """

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """The newest first."""
        kept = self._read()
        if len(kept) > 2 * _MOST:
            kept = kept[-_MOST:]
            self._write(kept, os.O_TRUNC)
        return reversed(kept[-_MOST:])

    def store_string(self, string: str) -> None:
        """Keep one more."""
        self._write([string], os.O_APPEND)

    def keep(self, text: str) -> None:
        """Remember what was typed, unless it is not to be."""
        if text.startswith(" ") or text == (self.get_strings() or [""])[-1]:
            return
        self.append_string(text)

    def _read(self) -> list[str]:
        if self._path is None:
            return []
        try:
            lines = self._path.read_text("utf-8", "replace").splitlines()
        except OSError:
            return []
        return [text for line in lines if (text := _text(line))]

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


def _text(line: str) -> str:
    try:
        value: object = json.loads(line)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


# Lines between who types them and who reads them: in order, and kept while nobody reads.

Reader = Future[str | None]


class TypedLines:
    """Gives each line to the reader that waits; without one, the line waits.

    Args:
        taken: Told each line when it is read.
    """

    def __init__(self, taken: Callable[[str], None]) -> None:
        self._taken = taken
        self._reader: Reader | None = None
        self.queued: list[str] = []
        self.over = False
        """Whether the person has left."""

    def want(self, reader: Reader) -> None:
        """Somebody waits for a line."""
        self._reader = reader
        self._give()

    def add(self, line: str) -> None:
        """A line was typed."""
        self.queued.append(line)
        self._give()

    def take_back(self) -> str:
        """The newest line that nobody has read, to be changed."""
        return self.queued.pop() if self.queued else ""

    def leave(self) -> None:
        """Nothing more is typed."""
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
            self._taken(line)
        reader.set_result(line)
