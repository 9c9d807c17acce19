"""What the agent of one long conversation is asked, calls and sees: all follows from the turn."""

from random import Random
from typing import Any

SESSION = "long"
_KINDS = ("none", "one", "two", "dump")
_WORDS = ("river", "stone", "green", "paper", "cloud", "seven", "table", "north", "glass", "early")
_DUMP = 50_000


def prompt(turn: int) -> str:
    """What the user says in this turn."""
    return f"Turn {turn}: what is there about {_some(turn, 8)}?"


def script(turn: int, step: int) -> list[tuple[str, dict[str, Any]]]:
    """What the model calls in this step; nothing ends the turn."""
    kind = _KINDS[turn % len(_KINDS)]
    if step > Random(turn).randint(0, 1) or kind == "none":  # noqa: S311 - nothing secret
        return []
    match "one" if step else kind:
        case "one":
            return [("look", {"at": f"{turn}.{step}"})]
        case "two":
            return [("look", {"at": f"{turn}.{step}"}), ("note", {"text": _some(turn, 8)})]
        case _:
            return [("dump", {"name": f"file {turn}"})]


def looked(at: str) -> str:
    """A small result."""
    return f"At {at} there is {_some(at, 40)}."


def noted(text: str) -> str:
    """A tiny one."""
    return f"Noted: {text}"


def dumped(name: str) -> str:
    """One that fits no window of these tests."""
    return f"{name}: {_some(name, _DUMP // 5)}"[:_DUMP]


RESULTS = {"look": looked, "note": noted, "dump": dumped}


def _some(seed: object, words: int) -> str:
    return " ".join(Random(str(seed)).choices(_WORDS, k=words))  # noqa: S311 - nothing secret
