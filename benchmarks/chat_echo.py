"""How soon a key is seen: in an empty session, and in a long one while it is folded.

Both chats run at the same time and take keys in turn, so that whatever else the machine is at
slows both.
"""

import shutil
from importlib import import_module
from statistics import median, quantiles
from uuid import uuid4

from benchmarks.chat_ground import MODEL, Ground, ground
from benchmarks.chat_pty import Drawn
from benchmarks.figures import Figure
from benchmarks.sessions import session

MESSAGES = 1_000
MOST = 2.0
_WINDOW = 400_000
_DONE = "compacted:"
_MOST_FOLDS = 12
_NEVER = "never"


def echo(*, quick: bool) -> list[Figure]:
    """Keys while a model writes the summary, and while the log itself does, which is work."""
    keys = 60 if quick else 200
    with ground() as made:
        gate = import_module("terminal.pieces").Gate
        made.provider.summary = [gate(_NEVER), ""]
        made.settle(f'[models."{MODEL}"]\nwindow = {_WINDOW}\n')
        made.keep("full.db", "long", session(MESSAGES))
        held = _held(made, keys)
        busy = _busy(made, keys)
    return [*_compared("held open by a model", *held), *_compared("made by the log", *busy)]


def _held(made: Ground, keys: int) -> tuple[list[float], list[float]]:
    """One fold that does not end."""
    empty, folding = list[float](), list[float]()
    with made.chat("empty.db") as one, _loaded(made, REFOLD_SUMMARIZER="primary") as other:
        one.until("/help")
        _fold(other)
        made.provider.wait_for_gate(_NEVER)  # what it takes to ask the model is done
        for _ in range(keys):
            empty.append(_key(one))
            folding.append(_key(other))
    return empty, folding


def _busy(made: Ground, keys: int) -> tuple[list[float], list[float]]:
    """As many folds as it takes: each is over soon."""
    empty, folding = list[float](), list[float]()
    with made.chat("empty.db") as one:
        one.until("/help")
        for _ in range(_MOST_FOLDS):
            with _loaded(made) as other:
                since = _fold(other)
                while len(folding) < keys:
                    beside, took = _key(one), _key(other)
                    if _DONE in other.text[since:]:
                        break
                    empty.append(beside)
                    folding.append(took)
            if len(folding) >= keys:
                break
    return empty, folding


def _loaded(made: Ground, **more: str) -> Drawn:
    """A chat with the long session, ready."""
    copy = f"{uuid4().hex}.db"
    shutil.copy(made.folder / "full.db", made.folder / copy)
    chat = made.chat(copy, "--resume", "long", **more)
    chat.until(f"of {_WINDOW // 1000}k")
    return chat


def _fold(chat: Drawn) -> int:
    """Begin a fold; where in the chat's text that was."""
    since = len(chat.text)
    chat.type("/compact\r")
    chat.until("Fold now?", since=since)
    since = len(chat.text)
    chat.type("y")
    chat.until("Fold now?", since=since)  # it stays, with its answer
    return since


def _key(chat: Drawn) -> float:
    took = chat.echo()
    chat.take_back()
    return took


def _compared(fold: str, empty: list[float], folding: list[float]) -> list[Figure]:
    name = f"chat: key echo while a fold of {MESSAGES:,} messages is {fold}"
    ratio = median(folding) / median(empty)
    late = _p95(folding) / _p95(empty)
    return [
        Figure(f"{name} / in an empty session, medians", ratio, MOST, "at most"),
        Figure(f"{name} / in an empty session, p95", late),
        Figure(f"{name}, median ms", 1000 * median(folding)),
        Figure(f"{name}, p95 ms", 1000 * _p95(folding)),
    ]


def _p95(seconds: list[float]) -> float:
    return quantiles(seconds, n=20)[-1]
