"""What a chat's memory does in a session that goes on and on."""

import subprocess

from benchmarks.chat_ground import MODEL, Ground, ground
from benchmarks.chat_pty import Drawn
from benchmarks.figures import Figure

WINDOW = 8_000
"""Tokens, so that the session is folded again and again, as one of that length is."""
MOST = 1.2
_FOLDED = "Conversation compacted:"
_PLACES = " ".join(f"src/package_{one}/module_{one}/test_of_{one}.py:{one}" for one in range(1, 9))
"""Few words, for each is streamed by itself, and many tokens."""


def memory(*, quick: bool) -> list[Figure]:
    """The process's memory late in a session, as a multiple of what it was earlier."""
    early, late = (50, 200) if quick else (500, 2_000)
    with ground(otherwise=_answer) as made:
        made.settle(f'[models."{MODEL}"]\nwindow = {WINDOW}\n')
        first, last, folds = _talk(made, early, late)
    # In a short session what is made once and kept, such as caches, is seen as growth.
    bar = None if quick else MOST
    return [
        Figure(f"chat: memory at turn {late:,} / at turn {early:,}", last / first, bar, "at most"),
        Figure(f"chat: memory at turn {late:,}, MB", last / 1024),
        Figure(f"chat: folds in {late:,} turns", folds),
    ]


def _talk(made: Ground, early: int, late: int) -> tuple[int, int, int]:
    sizes: dict[int, int] = {}
    folds = 0
    with made.chat("long.db") as chat:
        chat.until("/help")
        for turn in range(1, late + 1):
            _say(chat, turn)
            if turn in (early, late):
                chat.rest(2)  # a fold in the background comes to its end
                sizes[turn] = _resident(chat.pid)
            folds += chat.text.count(_FOLDED)
            chat.text = ""
    return sizes[early], sizes[late], folds


def _say(chat: Drawn, turn: int) -> None:
    chat.type(f"Turn {turn}: where?\r")
    chat.until(f"End of turn {turn}.")


def _answer(asked: object) -> str:
    prompt: str = getattr(asked, "prompt", "")
    turn = prompt.partition(":")[0].removeprefix("Turn ")
    return f"{_PLACES}\n\nEnd of turn {turn}."


def _resident(pid: int) -> int:
    """Kilobytes."""
    asked = ["ps", "-o", "rss=", "-p", str(pid)]
    found = subprocess.run(asked, capture_output=True, check=True, text=True)  # noqa: S603 - ours
    return int(found.stdout)
