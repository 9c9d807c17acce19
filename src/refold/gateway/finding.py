"""Which session a request belongs to.

Clients send their whole history each time. So each message is chained to those before it, and where
we asked or answered, that link of the chain is marked in the log. Whoever comes with the same chain
again comes from there. There are two chains:

- Answers are marked by the chain of what clients do not change: the user's words, and calls by the
  id that the provider gave them (`refold.wire.fingerprint`). A client may rewrite everything else.
- Requests are marked by the chain of their content, to the letter: a retry says the same again.

Where an answer's mark is found in several sessions, the ids in it identify nothing: some servers
name every call `call_0`. Then the content decides. What two conversations have in common to the
letter does not tell them apart, and then it does not matter which of their sessions each goes on
with, as long as none gets into the other's way: who comes first takes one that nobody has gone on
with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

from refold.gateway.dialects.asked import Asked
from refold.gateway.dialects.dialect import Dialect
from refold.log import Marked
from refold.wire.alignment import prefix_keys

_SIZE: Final = 16
_EMPTY: Final = b"an answer without words or calls"
Step = Literal["asked", "answered", "failed"]
"""What was done where a mark is: a request ended there, the model answered, or it did not."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The links of a request's messages; the last is that of all of them."""

    links: tuple[bytes, ...]
    """By what clients do not change."""
    answered: tuple[int, ...]
    """The places of the messages that a model made."""
    content: tuple[bytes, ...] = ()
    """By what is said, to the letter."""
    seed: bytes = b""
    """Where it begins: the caller's."""

    @property
    def end(self) -> bytes:
        """The link of the whole request's content."""
        return (self.content or self.links)[-1]

    @property
    def keys(self) -> list[bytes]:
        """The marks to look for."""
        ends = [key_of("asked", self.end), key_of("failed", self.end)]
        return [*ends, *(key_of("answered", self.links[at]) for at in self.answered)]

    @property
    def prompts(self) -> list[int]:
        """The places of the messages that an answer follows: a request ended with each."""
        answers = set(self.answered)
        return [at - 1 for at in self.answered if at and at - 1 not in answers]

    def prompt_before(self, index: int) -> int | None:
        """The place of the request that the answer with this message was given to."""
        answers = set(self.answered)
        while index in answers:
            index -= 1
        return index if index >= 0 else None

    def prompt_keys(self, since: int) -> list[bytes]:
        """The marks of requests from message `since` on whose answers the log may not have."""
        content = self.content or self.links
        links = [content[at] for at in self.prompts if at >= since]
        return [key_of(step, link) for link in links for step in ("asked", "failed")]


def seed(*whose: str) -> bytes:
    """Where a chain begins: conversations of others, or in another format, have no link alike."""
    digest = blake2b(digest_size=_SIZE)
    for one in whose:
        text = one.encode(errors="surrogatepass")
        digest.update(len(text).to_bytes(8, "big") + text)
    return digest.digest()


def chained(dialect: Dialect, before: "Chain | bytes", messages: Sequence[bytes]) -> Chain:
    """The chain of these messages, after another chain or from a seed on."""
    after = Chain((before,), (), (before,), before) if isinstance(before, bytes) else before
    answers = [dialect.answers(message) for message in messages]
    links: list[bytes] = []
    link, empty = after.links[-1], True
    for index, message in enumerate(messages):
        spine = dialect.known_by(message).spine
        empty = empty and not spine
        ends = answers[index] and not any(answers[index + 1 : index + 2])
        if ends and empty:
            spine = (_EMPTY,)  # an answer with nothing in it was an answer too
        link = prefix_keys(link, spine)[-1] if spine else link
        links.append(link)
        empty = empty or not answers[index] or ends
    content = prefix_keys(after.end, map(dialect.likeness, messages))
    answered = (index for index, answer in enumerate(answers) if answer)
    return Chain(
        tuple(links) or (after.links[-1],),
        tuple(answered),
        tuple(content) or (after.end,),
        after.seed,
    )


def chain_of(dialect: Dialect, asked: Asked, key: str) -> Chain:
    """The chain of a request that came with a key."""
    whose = asked.identity or ("",)
    return chained(dialect, seed(dialect.name, key, *whose), asked.messages)


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
class Rewritten:
    """A session goes on with another history, to which its client has shortened its own."""

    session: str


@dataclass(frozen=True, slots=True)
class Branch:
    """The past after an answer was written anew, or is gone on with a second time."""

    session: str
    seq: int
    new: int


Found = New | Continue | Retry | Branch | Rewritten


def found(chain: Chain, rows: Sequence[Marked]) -> Found:
    """Where the request comes from, by the marks that were found."""
    by_key: dict[bytes, list[Marked]] = {}
    for row in rows:
        by_key.setdefault(row.key, []).append(row)
    for row in by_key.get(key_of("failed", chain.end), []):
        if row.seq == row.tip and row.before:  # nobody was answered here: it is nobody else's
            return Retry(row.session, row.before, row.tip)
    if (newest := newest_answer(chain, rows)) is None:
        return New()
    return _from_answer(chain, newest.rows, by_key, newest.place + 1)


class KnownAnswer(NamedTuple):
    """The newest answer of a history that the log has."""

    place: int
    """Which message it is."""
    rows: list[Marked]
    """Where the log has it; in several sessions where its ids do not identify it."""


def newest_answer(chain: Chain, rows: Sequence[Marked]) -> KnownAnswer | None:
    """The newest answer that was found, if one was."""
    by_key: dict[bytes, list[Marked]] = {}
    for row in rows:
        by_key.setdefault(row.key, []).append(row)
    for index in reversed(chain.answered):
        if ours := by_key.get(key_of("answered", chain.links[index])):
            return KnownAnswer(index, ours)
    return None


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


def unanswered(chain: Chain, rows: Sequence[Marked], since: int) -> Continue | None:
    """Where a session waits for an answer that the client brings along, if one does.

    The answer was given while the store was unavailable, so the newest mark there is the prompt's.
    """
    ends = {row.key: row for row in rows if row.seq == row.tip}
    content = chain.content or chain.links
    for at in reversed(chain.prompts):
        for step in ("failed", "asked"):
            row = ends.get(key_of(step, content[at])) if at >= since else None
            if row is not None:
                return Continue(row.session, row.seq, at + 1)
    return None
