"""Quoting: what was said, in as few characters as asked, with both ends where it was cut."""

from collections.abc import Iterable

from refold.view.framing import lines_of, on_one_line

TRUNCATED = "...<truncated>..."


def clipped(text: str, room: int) -> str:
    """The text, or its beginning and end around a mark, within about `room` characters."""
    text = text.strip()
    if len(text) <= room:
        return text
    room = max(0, room - len(TRUNCATED))
    tail = room // 2
    return f"{text[: room - tail]}{TRUNCATED}{text[len(text) - tail :] if tail else ''}"


def sound(text: str) -> str:
    """The text without lone surrogates, which are no text and could not be kept."""
    return text.encode(errors="replace").decode()


def quoted(text: str) -> str:
    """The text with every line after the first set in, so that none can pass for one of ours."""
    return "\n  > ".join(lines_of(text))


def one_line(text: str, room: int) -> str:
    """The same, on one line."""
    return clipped(on_one_line(text), room)


def fair_clip(lengths: Iterable[int], room: int, most: int) -> int:
    """How long each of these texts may be so that together they fit: short ones stay whole."""
    left = sorted(lengths)
    for at, length in enumerate(left):
        share = room // (len(left) - at)
        if length > share:
            return min(most, share)
        room -= length
    return most
