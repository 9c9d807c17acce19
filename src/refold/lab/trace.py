"""The requests of a replay, small enough to keep and to compare with those of another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from refold.fold.user_words import rules_in
from refold.lab.messages import Reader
from refold.lab.replay import Replay
from refold.terminal_text import first_words
from refold.wire.fingerprint import users_words

_LINE: Final = 88
_CONTEXT: Final = 2
_ENDS: Final = 3
_SHORT: Final = 12  # characters of a hash


class LostRule(NamedTuple):
    """A standing rule of the user's that was no longer sent."""

    rule: str
    request: int
    """The first request without it, from 1."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What was sent, request by request."""

    requests: tuple[tuple[str, ...], ...]
    """The hashes of the messages of each."""
    tokens: tuple[int, ...]
    """Of each request."""
    lines: dict[str, str]
    """A line about each message, by its hash."""
    lost: tuple[LostRule, ...]
    """The rules that some request did not have, in the user's words."""
    moved: int
    """Requests that do not begin with all of the one before: its cache is used in part only."""

    @classmethod
    def of(cls, replay: Replay, reader: Reader) -> "Trace":
        hashes: dict[bytes, str] = {}
        lines: dict[str, str] = {}
        for payload in {payload for request in replay.requests for payload in request.view}:
            message = reader.read(payload)
            hashes[payload] = sha256(payload).hexdigest()[:_SHORT]
            words = first_words(" ".join(message.text.split()), _LINE)
            lines[hashes[payload]] = f"{message.speaker:9} {message.tokens:>7,}  {words}"
        requests = [
            tuple(hashes[payload] for payload in request.view) for request in replay.requests
        ]
        moved = sum(after[: len(before)] != before for before, after in pairwise(requests))
        tokens = tuple(request.sent for request in replay.requests)
        return cls(tuple(requests), tokens, lines, tuple(_lost(replay, reader)), moved)

    @property
    def digest(self) -> str:
        """The same for the same requests."""
        text = "\n".join(" ".join(request) for request in self.requests)
        return sha256(text.encode()).hexdigest()[:16]


def difference(before: Trace, after: Trace, max_lines: int = 24) -> Iterator[str]:
    """The first request that differs: how large it was and is, and which messages changed."""
    pairs = zip(before.requests, after.requests, strict=False)
    found = next((index for index, (old, new) in enumerate(pairs) if old != new), None)
    if found is None:
        return
    yield (
        f"request {found + 1} of {len(after.requests)}: "
        f"{len(before.requests[found]):,} messages with {before.tokens[found]:,} tokens before, "
        f"{len(after.requests[found]):,} with {after.tokens[found]:,} now"
    )
    old, new = ([trace.lines[name] for name in trace.requests[found]] for trace in (before, after))
    changes = [*unified_diff(old, new, n=_CONTEXT, lineterm="")][2:]
    lines = [*_shortened(changes)]
    yield from lines[:max_lines]
    if len(lines) > max_lines:
        yield f"... and {len(lines) - max_lines:,} more lines"


def _shortened(changes: Sequence[str]) -> Iterator[str]:
    """The changes, with long runs of one kind cut in the middle."""
    for sign, run in groupby(changes, key=lambda line: line[:1]):
        lines = [*run]
        if len(lines) <= 2 * _ENDS + 1:
            yield from lines
            continue
        yield from lines[:_ENDS]
        yield f"{sign}... {len(lines) - 2 * _ENDS:,} more messages"
        yield from lines[-_ENDS:]


def _lost(replay: Replay, reader: Reader) -> Iterator[LostRule]:
    """The user's standing rules that a later request did not have in the same words."""
    rules: dict[str, int] = {}
    lost: set[str] = set()
    payloads = replay.recording.payloads
    texts: dict[bytes, str] = {}
    read = 0
    for number, request in enumerate(replay.requests, 1):
        for payload in payloads[read : request.at]:
            message = reader.read(payload)
            if message.speaker == "user":
                for rule in rules_in(users_words(message.text)):
                    rules.setdefault(_plain(rule), number)
        read = request.at
        wanted = [rule for rule in rules if rule not in lost]
        missing = _missing(wanted, request.view, reader, texts)
        lost.update(missing)
        yield from (LostRule(rule, number) for rule in missing)


def _missing(
    rules: Sequence[str], view: Sequence[bytes], reader: Reader, texts: dict[bytes, str]
) -> list[str]:
    for payload in view:
        if payload not in texts:
            texts[payload] = _plain(reader.read(payload).text)
    return [rule for rule in rules if not any(rule in texts[payload] for payload in view)]


def _plain(text: str) -> str:
    return " ".join(text.split())
