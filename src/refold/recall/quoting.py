"""Quoting for a model: each line marked, so that what is quoted cannot pass for anything else."""

from collections.abc import Iterable

from refold.view import framing as frames

MARK = "> "


def quoted(text: str) -> str:
    """The text with a mark before each of its lines."""
    return frames.quoted(text, MARK)


def framed(opening: str, text: str, closing: str = "") -> str:
    """A quotation with what the tool itself says before and after it."""
    return "\n".join(part for part in (opening, quoted(text), closing) if part)


def fitting(blocks: Iterable[str], room: int) -> list[str]:
    """As many of the blocks as have room when quoted, one below the other."""
    kept: list[str] = []
    for block in blocks:
        room -= len(quoted(block)) + 1
        if room < 0:
            break
        kept.append(block)
    return kept
