"""A request's place in a session: what is said there, and by which marks it is found again."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Final, Literal, NamedTuple, cast

from refold.gateway.dialects.dialect import Dialect, ParsedRequest
from refold.gateway.sessions import AgentIdentity, GatewaySession, Origin
from refold.log import Mark, Marked, Title
from refold.models.experience import Setup
from refold.wire import wire_for
from refold.wire.alignment import prefix_keys
from refold.wire.harness import users_words

# Which session a request belongs to.
#
# Clients send their whole history each time. So each message is chained to those before it, and
# where
# we asked or answered, that link of the chain is marked in the log. Whoever comes with the same
# chain
# again comes from there. There are two chains:
#
# - Answers are marked by the chain of what clients do not change: the user's words, and calls by
# the
#   id that the provider gave them (`refold.wire.fingerprint`). A client may rewrite everything
# else.
# - Requests are marked by the chain of their content, to the letter: a retry says the same again.
#
# Where an answer's mark is found in several sessions, the ids in it identify nothing: some servers
# name every call `call_0`. Then the content decides. What two conversations have in common to the
# letter does not tell them apart, and then it does not matter which of their sessions each goes on
# with, as long as none gets into the other's way: who comes first takes one that nobody has gone on
# with.

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


def chain_of(dialect: Dialect, parsed_request: ParsedRequest, key: str) -> Chain:
    """The chain of a request that came with a key."""
    whose = parsed_request.identity or ("",)
    return chained(dialect, seed(dialect.name, key, *whose), parsed_request.messages)


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
    return _from_answer(chain, newest.rows, by_key, newest.message + 1)


class KnownAnswer(NamedTuple):
    """The newest answer of a history that the log has."""

    message: int
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
    asked_before = by_key.get(key_of("asked", chain.end), [])
    for row in asked_before:
        if row.seq in {row.tip, row.before}:
            return Retry(row.session, row.seq, row.tip)
    if asked_before:  # long ago, and then that session went on
        before = next((row for row in ours if row.session == asked_before[0].session), ours[0])
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


_TITLE: Final = 60
"""How many characters of what was said first are a session's title."""
_FIRST_MESSAGE: Final = 2
"""The entry of a session's first message."""
_LOOKED: Final = 20_000
"""Characters of a message that are looked through for the words of its title."""
_OPENING: Final = 16
"""How many texts are looked at for one that a person said."""
_SCANNED: Final = 200
"""Messages of a turn that are searched for its prompts: a title is not worth reading 10,000."""
_PIECE: Final = 500
"""Messages that are said at once where it may be done piece by piece."""
_PIECE_BYTES: Final = 256 * 1024
_MARKED_TURNS: Final = 8
"""Of a history with turns that are not in the log yet, the newest that get marks of their own. Each
mark is an append, and after an outage all conversations come at once.
"""


MayUse = Callable[[Origin], Awaitable[bool]]
"""Whether a caller may go on in a session that began like this."""


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """A request, and whose it is."""

    tenant: str
    dialect: Dialect
    parsed_request: ParsedRequest
    chain: Chain
    """Of its messages."""
    setup: Setup
    session: str | None = None
    """The session's name, where the client says it."""
    key: str = ""
    """The id of the caller's key; empty where none is needed."""
    may_use: MayUse | None = None
    """Whether the caller may go on in a session that it names; None: in any."""

    @property
    def agent(self) -> AgentIdentity:
        """Who asks."""
        return AgentIdentity.of(self.parsed_request.instructions, self.setup.hashes["tools"])

    @property
    def hint(self) -> str:
        """What the client calls its conversation, where the format has a field for it."""
        name = self.parsed_request.body.get("prompt_cache_key")
        return name if isinstance(name, str) else ""

    @property
    def title(self) -> str | None:
        """What it is about: how the user's own words begin.

        An agent's harness puts text of its own before them, and some agents examples: what comes
        before an answer that the gateway did not give may be one, so the newest turn counts.
        """
        prompts = list(islice(self._prompts(), _OPENING))
        words = next((one for text in prompts if (one := _plain(users_words(text)[:1_000]))), "")
        words = words or next((one for text in prompts if (one := _plain(text[:1_000]))), "")
        if not words:
            return None
        return words if len(words) <= _TITLE else f"{words[:_TITLE]}…"

    @property
    def sourced_title(self) -> Title | None:
        """The title, with the entry that will hold its words: it is forgotten with that entry."""
        title = self.title
        if title is None:
            return None
        words = title.removesuffix("…")
        wire = wire_for(self.dialect.name)
        for index, message in enumerate(self.parsed_request.messages):
            # A session that is begun gets all messages in order, after its opening.
            if any(
                words in _plain(shape.text[:_LOOKED]) for shape in wire.describe(message).shapes
            ):
                return Title(title, _FIRST_MESSAGE + index)
        return Title(title, _FIRST_MESSAGE)

    def _prompts(self) -> Iterator[str]:
        """What the user said in the newest turn, in order."""
        wire = wire_for(self.dialect.name)
        answered = self.chain.answered
        newest = (
            self.parsed_request.messages[answered[-1] + 1 :]
            if answered
            else self.parsed_request.messages
        )
        said = newest if self._speaks(newest) else self.parsed_request.messages
        for message in islice(said, _SCANNED):
            yield from (one.text for one in wire.describe(message).shapes if one.kind == "prompt")

    def _speaks(self, messages: Sequence[bytes]) -> bool:
        wire = wire_for(self.dialect.name)
        looked_at = islice(messages, _SCANNED)
        shapes = (shape for message in looked_at for shape in wire.describe(message).shapes)
        return any(shape.kind == "prompt" and users_words(shape.text) for shape in shapes)


@dataclass
class SessionLease:
    """Where a request has its place, until it is answered."""

    incoming: IncomingRequest
    kept: GatewaySession
    holding: AsyncExitStack = field(repr=False)
    tip: int | None = 0
    """The session's newest mark: the answer comes right after it."""
    said: bool = False
    """Something was said just now."""

    async def say(self, new: int, first: Callable[[], Awaitable[object]] | None = None) -> None:
        """Say what is new, from this message on; something else may have to be done first."""
        messages = self._new(new)
        if messages:
            async with self.kept.turn:
                if first is not None:
                    await first()
                for piece, key in self._turns(messages):
                    await self._say(piece, key)

    async def begin(self) -> None:
        """Say all of it in a session that nobody else can know, and so may find unfinished.

        A long past comes piece by piece: others are answered between the pieces. The last has the
        mark by which the session is found.
        """
        (opening, first), *turns = self._turns(self._new(0))
        *before, last = _pieces(opening)
        async with self.kept.turn:
            for piece in before:
                await self.kept.session.say(*piece)
                await asyncio.sleep(0)
            for messages, key in ((last, first), *turns):
                await self._say(messages, key)

    async def ask_again(self, seq: int) -> None:
        """Ask what was asked there; what came of it stays in the log, and leaves the view."""
        if self.tip != seq:
            mark = Mark(key_of("asked", self.incoming.chain.end), 0, self.tip)
            async with self.kept.turn:
                self.tip = await self.kept.session.rewind(seq, mark=mark)

    def answered(self, payloads: Sequence[bytes]) -> Mark:
        """The mark of an answer, on its last message."""
        chain = chained(self.incoming.dialect, self.incoming.chain, payloads)
        return Mark(key_of("answered", chain.links[-1]), len(payloads) - 1, self.tip)

    def failed(self) -> Mark:
        """The mark of what was not answered."""
        return Mark(key_of("failed", self.incoming.chain.end), 0, self.tip)

    async def leave(self) -> None:
        """It is answered, or given up."""
        await self.holding.aclose()

    def _new(self, new: int) -> list[bytes]:
        dialect, messages = self.incoming.dialect, list(self.incoming.parsed_request.messages[new:])
        # Thoughts that came with the answer before are in the log already.
        if new and dialect.answers(self.incoming.parsed_request.messages[new - 1]):
            while messages and dialect.blank(messages[0]):
                del messages[0]
        return messages

    def _turns(self, messages: Sequence[bytes]) -> list[tuple[Sequence[bytes], bytes]]:
        """The messages turn by turn, each with its mark.

        Turns that were passed on unmanaged get the marks that they would have got, so that clients
        can go back to them and other gateways see that they are logged.
        """
        chain, total = self.incoming.chain, len(self.incoming.parsed_request.messages)
        first = total - len(messages)
        prompts = [at for at in chain.prompts[-_MARKED_TURNS:] if first <= at < total - 1]
        answers = set(chain.answered)
        ends = [
            at for at in chain.answered if at + 1 < total and at + 1 not in answers and at >= first
        ][-_MARKED_TURNS:]
        steps = sorted([*((at, "asked") for at in prompts), *((at, "answered") for at in ends)])
        turns: list[tuple[Sequence[bytes], bytes]] = []
        begun = first
        for at, step in steps:
            if at >= begun:
                piece = messages[begun - first : at + 1 - first]
                links = chain.links if step == "answered" else chain.content
                turns.append((piece, key_of(cast("Step", step), links[at])))
                begun = at + 1
        return [*turns, (messages[begun - first :], key_of("asked", chain.end))]

    async def _say(self, messages: Sequence[bytes], key: bytes) -> None:
        mark = Mark(key, len(messages) - 1, self.tip)
        self.tip = (await self.kept.session.say(*messages, mark=mark)).last
        self.said = True


def _pieces(messages: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """The messages, as many together as are said in a moment; a large one is a piece by itself."""
    begun = size = 0
    for at, message in enumerate(messages):
        size += len(message)
        if at > begun and (at - begun >= _PIECE or size > _PIECE_BYTES):
            yield messages[begun:at]
            begun, size = at, len(message)
    yield messages[begun:]


def _plain(text: str) -> str:
    """On one line, with nothing in it that a terminal obeys, or that is half a character."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())
