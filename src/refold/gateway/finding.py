"""Which session a request belongs to.

Clients send their whole history each time. So each message is chained to those before it by what
identifies it, and where we asked or answered, that link of the chain is marked in the log. Whoever
comes with the same chain again comes from there.

What two conversations have in common to the letter does not tell them apart. Then it does not
matter which of their sessions each goes on with, as long as none gets into the other's way: who
comes first takes one that nobody has gone on with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Literal

from refold.gateway.dialects.asked import Asked
from refold.gateway.dialects.dialect import Dialect
from refold.log import Marked

_SIZE: Final = 16
Step = Literal["asked", "answered", "failed"]
"""What was done where a mark is: a request ended there, the model answered, or it did not."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The links of a request's messages; the last is that of all of them."""

    links: tuple[bytes, ...]
    answered: tuple[int, ...]
    """The places of the messages that a model made."""

    @property
    def end(self) -> bytes:
        """The link of the whole request."""
        return self.links[-1]

    @property
    def keys(self) -> list[bytes]:
        """The marks to look for."""
        ends = [key_of("asked", self.end), key_of("failed", self.end)]
        return [*ends, *(key_of("answered", self.links[at]) for at in self.answered)]


def seed(*whose: str) -> bytes:
    """Where a chain begins: conversations of others, or in another format, have no link alike."""
    digest = blake2b(digest_size=_SIZE)
    for one in whose:
        text = one.encode(errors="surrogatepass")
        digest.update(len(text).to_bytes(8, "big") + text)
    return digest.digest()


def chained(dialect: Dialect, link: bytes, messages: Sequence[bytes]) -> Chain:
    """The chain of these messages, from a link on."""
    links: list[bytes] = []
    answered: list[int] = []
    for at, message in enumerate(messages):
        likeness = dialect.likeness(message)
        if likeness:
            link = blake2b(link + likeness, digest_size=_SIZE).digest()
        if dialect.answers(message):  # also with nothing: that was an answer too
            answered.append(at)
        links.append(link)
    return Chain(tuple(links) or (link,), tuple(answered))


def chain_of(dialect: Dialect, asked: Asked, key: str) -> Chain:
    """The chain of a request that came with a key."""
    return chained(dialect, seed(dialect.name, key, asked.user), asked.messages)


def key_of(step: Step, link: bytes) -> bytes:
    """The mark of a step at a link."""
    return blake2b(link, digest_size=_SIZE, person=step.encode()).digest()


@dataclass(frozen=True, slots=True)
class New:
    """Nobody has said this before."""


@dataclass(frozen=True, slots=True)
class Continue:
    """A session goes on from its newest answer, with the messages from `new` on."""

    session: str
    seq: int
    new: int


@dataclass(frozen=True, slots=True)
class Retry:
    """What a session was asked last is asked again."""

    session: str
    seq: int
    """Where it was asked."""
    tip: int
    """The newest mark: there, or on what came of it."""


@dataclass(frozen=True, slots=True)
class Branch:
    """The past after an answer was written anew, or is gone on with a second time."""

    session: str
    seq: int
    new: int


Found = New | Continue | Retry | Branch


def found(chain: Chain, rows: Sequence[Marked]) -> Found:
    """Where the request comes from, by the marks that were found."""
    by_key: dict[bytes, list[Marked]] = {}
    for row in rows:
        by_key.setdefault(row.key, []).append(row)
    for row in by_key.get(key_of("failed", chain.end), []):
        if row.seq == row.tip and row.before:  # nobody was answered here: it is nobody else's
            return Retry(row.session, row.before, row.tip)
    for at in reversed(chain.answered):
        ours = by_key.get(key_of("answered", chain.links[at]), [])
        if ours:
            return _from_answer(chain, ours, by_key, at + 1)
    return New()


def _from_answer(
    chain: Chain, ours: list[Marked], by_key: dict[bytes, list[Marked]], new: int
) -> Found:
    asked = by_key.get(key_of("asked", chain.end), [])
    for row in asked:
        if row.seq in {row.tip, row.before}:
            return Retry(row.session, row.seq, row.tip)
    if asked:  # long ago, and then that session went on
        before = next((row for row in ours if row.session == asked[0].session), ours[0])
        return Branch(before.session, before.seq, new)
    for row in ours:
        if row.seq == row.tip:
            return Continue(row.session, row.seq, new)
    return Branch(ours[0].session, ours[0].seq, new)
