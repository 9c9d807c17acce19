"""A question with a few answers, each chosen by one key."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from rich.text import Text

from refold.cli.chat.clean import cleaned


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


@dataclass(frozen=True, slots=True)
class Asking:
    """A question that waits for its answer."""

    question: str
    answers: Sequence[str]
    answer: "Future[str | None]"

    @property
    def shown(self) -> str:
        """The question, on one line."""
        return f"{cleaned(self.question)} {offered(self.answers)} "


def answered(asking: Asking, answer: str | None) -> Text:
    """What stays of it."""
    return Text.assemble((f"{cleaned(asking.question)} ", "dim"), answer or "–")  # noqa: RUF001
