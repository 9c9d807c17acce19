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

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

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
