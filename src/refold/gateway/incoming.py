"""A request as it comes in: its body, the session that it belongs to, and what it adds there.

Clients send their whole history each time. So each message is chained to those before it, and
where a request was asked or answered, that link of the chain is marked in the log. A request with
the same chain continues from there. There are two chains:

- Answers are marked by the chain of what clients do not change: the user's words, and calls by the
  id that the provider gave them (`Fingerprint.spine`). A client may rewrite everything else.
- Requests are marked by the chain of their content, to the letter: a retry says the same again.

If an answer's mark is in several sessions, the ids in it identify nothing: some servers name every
call `call_0`. Then the content decides. What two conversations have in common to the letter does
not tell them apart, and then it does not matter which of their sessions each continues, as long as
neither gets into the other's way: the first takes one that nobody has continued.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Final, Literal, NamedTuple

from refold.gateway.dialects.dialect import Dialect, ParsedRequest, Reference
from refold.gateway.hidden_recall import HiddenRecall
from refold.gateway.sessions import AgentIdentity, GatewaySession, SessionStart
from refold.log import Mark, Marked, Title
from refold.models.experience import Setup
from refold.session import Session
from refold.terminal_text import whole_words
from refold.wire import Wire, wire_for
from refold.wire.fingerprint import digest, prefix_keys, users_words

_KEY_SIZE: Final = 16
_EMPTY_ANSWER: Final = b"an answer without words or calls"
_MAX_TITLE: Final = 60
_FIRST_MESSAGE: Final = 2
"""The entry of a session's first message."""
_MAX_SEARCHED: Final = 20_000
"""Characters of a message that are searched for the words of its title."""
_MAX_PROMPTS: Final = 16
"""Prompts that are looked at for one that a person wrote."""
_MAX_SCANNED: Final = 200
"""Messages of a turn that are searched for its prompts: a title is not worth reading 10,000."""
_MAX_CHUNK: Final = 500
"""Messages that are appended at once where it may be done piece by piece."""
_MAX_CHUNK_BYTES: Final = 256 * 1024
_MAX_HINT: Final = 200
_CONVERSATION_HEADERS: Final = (
    "x-claude-code-session-id",
    "x-qwen-code-session-id",
    "thread-id",  # of Codex: its sub-agents share the session
    "conversation_id",
    "session_id",
    "session-id",
    "x-opencode-session",
    "x-session-affinity",
    "x-session-id",
    "x-client-session-id",
)
"""Where agents say which conversation a request is of. Names of turns and requests are none."""
_MARKED_TURNS: Final = 8
"""Of a history with turns that are not in the log yet, the newest that get marks of their own. Each
mark is an append, and after an outage all conversations come at once."""

Step = Literal["asked", "answered", "failed"]
"""What happened at a mark: a request ended there, the model answered, or it did not."""
MayUse = Callable[[SessionStart], Awaitable[bool]]
"""Whether a caller may continue a session with this origin."""


# Which session a request belongs to.


@dataclass(frozen=True, slots=True)
class Chain:
    """The links of a request's messages; the last is that of all of them."""

    links: tuple[bytes, ...]
    """By what clients do not change."""
    answered: tuple[int, ...]
    """The indexes of the model's messages."""
    content: tuple[bytes, ...] = ()
    """By the content, to the letter."""
    seed: bytes = b""
    """Where it begins: the caller's."""

    @property
    def end(self) -> bytes:
        """The link of the whole request's content."""
        return (self.content or self.links)[-1]

    @property
    def tip(self) -> tuple[bytes, bytes, bytes]:
        """What is needed to extend it: its last links and its seed."""
        return self.links[-1], self.end, self.seed

    @property
    def keys(self) -> list[bytes]:
        """The marks to look for."""
        ends = [key_of("asked", self.end), key_of("failed", self.end)]
        return [*ends, *(key_of("answered", self.links[index]) for index in self.answered)]

    @property
    def prompts(self) -> list[int]:
        """The indexes of the messages that an answer follows: a request ended with each."""
        answers = set(self.answered)
        return [index - 1 for index in self.answered if index and index - 1 not in answers]

    def prompt_before(self, index: int) -> int | None:
        """The last message of the request that the answer with this message was given to."""
        answers = set(self.answered)
        while index in answers:
            index -= 1
        return index if index >= 0 else None

    def prompt_keys(self, since: int) -> list[bytes]:
        """The marks of requests from message `since` on whose answers the log may not have."""
        content = self.content or self.links
        links = [content[index] for index in self.prompts if index >= since]
        return [key_of(step, link) for link in links for step in ("asked", "failed")]


def extend_chain(
    dialect: Dialect, tip: tuple[bytes, bytes, bytes], messages: Sequence[bytes]
) -> Chain:
    """The chain of these messages, after the tip of another one."""
    link, asked, seed = tip
    fingerprints = [*map(dialect.fingerprint, messages)]
    answers = [message.answers for message in fingerprints]
    content = prefix_keys(asked, (message.content for message in fingerprints))
    links: list[bytes] = []
    empty = True
    for index, message in enumerate(fingerprints):
        spine = message.spine
        empty = empty and not spine
        ends = answers[index] and not any(answers[index + 1 : index + 2])
        if ends and empty:
            # An empty answer is an answer too. If nothing before it has words or ids either, it is
            # identified by its request.
            spine = (_EMPTY_ANSWER, asked) if link == seed else (_EMPTY_ANSWER,)
        link = prefix_keys(link, spine)[-1] if spine else link
        links.append(link)
        empty = empty or not answers[index] or ends
        asked = asked if answers[index] else content[index]
    return Chain(
        tuple(links) or (link,),
        tuple(index for index, answer in enumerate(answers) if answer),
        tuple(content) or (asked,),
        seed,
    )


def owner_of(dialect: Dialect, identity: Sequence[str], key: str) -> bytes:
    """Whose conversation it is: others, or the same caller in another format, share nothing."""
    return digest(dialect.name, key, *(identity or ("",)))


def chain_of(dialect: Dialect, parsed_request: ParsedRequest, key: str, root: str = "") -> Chain:
    """The chain of a request that came with a key.

    Its seed is the caller's: conversations of others, or in another format, share no link. What
    only the provider has of a conversation (`root`) is part of it: two that continue from different
    things are never one.
    """
    seed = owner_of(dialect, parsed_request.identity, key)
    seed = digest(seed.hex(), root) if root else seed
    return extend_chain(dialect, (seed, seed, seed), parsed_request.messages)


def conversation_of(headers: Mapping[str, str]) -> str:
    """The client's own name of its conversation, where its headers have one.

    A sub-agent of Claude Code has the same session as its parent, and a name of its own.
    """
    name = next(filter(None, map(headers.get, _CONVERSATION_HEADERS)), "")
    agent = headers.get("x-claude-code-agent-id") or ""
    return f"{name}/{agent}"[:_MAX_HINT] if name and agent else name[:_MAX_HINT]


def key_of(step: Step, link: bytes) -> bytes:
    """The mark of a step at a link."""
    return blake2b(link, digest_size=_KEY_SIZE, person=step.encode()).digest()


@dataclass(frozen=True, slots=True)
class New:
    """No session has this history."""


@dataclass(frozen=True, slots=True)
class Continue:
    """A session continues from its newest answer, with the messages from `new` on."""

    session: str
    seq: int
    new: int


@dataclass(frozen=True, slots=True)
class Retry:
    """A session's last request is asked again."""

    session: str
    seq: int
    """Where it was asked."""
    tip: int
    """The newest mark: there, or on what came of it."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A session continues with another history, to which its client has shortened its own."""

    session: str


@dataclass(frozen=True, slots=True)
class Branch:
    """The history after an answer was changed, or is continued a second time."""

    session: str
    seq: int
    new: int


Location = New | Continue | Retry | Branch | Rewritten


class AnswerMarks(NamedTuple):
    """An answer of a history that the log has."""

    message: int
    """The index of its last message in the history."""
    rows: list[Marked]
    """Where the log has it; in several sessions where its ids do not identify it."""


def last_answer(chain: Chain, rows: Sequence[Marked]) -> AnswerMarks | None:
    """The last answer of a history that has marks among these, if one has."""
    by_key = _by_key(rows)
    for index in reversed(chain.answered):
        if marks := by_key.get(key_of("answered", chain.links[index])):
            return AnswerMarks(index, marks)
    return None


def locate(chain: Chain, rows: Sequence[Marked]) -> Location:
    """Where the request continues, by its marks in the log."""
    by_key = _by_key(rows)
    for row in by_key.get(key_of("failed", chain.end), []):
        if row.seq == row.tip and row.before:  # nobody was answered here: it is nobody else's
            return Retry(row.session, row.before, row.tip)
    answer = last_answer(chain, rows)
    if answer is None:
        return New()
    new = answer.message + 1
    same_requests = by_key.get(key_of("asked", chain.end), [])
    for row in same_requests:
        if row.seq in {row.tip, row.before}:
            return Retry(row.session, row.seq, row.tip)
    first = answer.rows[0]
    if same_requests:  # long ago, and then that session continued
        session = same_requests[0].session
        branch = next((row for row in answer.rows if row.session == session), first)
        return Branch(branch.session, branch.seq, new)
    for row in answer.rows:
        if row.seq == row.tip:
            return Continue(row.session, row.seq, new)
    return Branch(first.session, first.seq, new)


def locate_pending(chain: Chain, rows: Sequence[Marked], since: int) -> Continue | None:
    """Where a session waits for an answer that the client brings along, if one does.

    The answer was given while the store was unavailable, so the newest mark there is the prompt's.
    """
    tips = {row.key: row for row in rows if row.seq == row.tip}
    content = chain.content or chain.links
    for index in reversed(chain.prompts):
        for step in ("failed", "asked"):
            row = tips.get(key_of(step, content[index])) if index >= since else None
            if row is not None:
                return Continue(row.session, row.seq, index + 1)
    return None


def _by_key(rows: Sequence[Marked]) -> dict[bytes, list[Marked]]:
    by_key: dict[bytes, list[Marked]] = {}
    for row in rows:
        by_key.setdefault(row.key, []).append(row)
    return by_key


# What a request adds to its session.


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
    """The session's name, where the client gives one."""
    key: str = ""
    """The id of the caller's key; empty where none is needed."""
    may_use: MayUse | None = None
    """Whether the caller may continue a session that it names; None: any."""
    recall: HiddenRecall | None = None
    """Answers the model's calls to the tools that the gateway has added, if it has."""
    conversation: str = ""
    """The client's own name of its conversation, if its headers have one: a hint, no proof."""
    reference: Reference | None = None
    """What the client continues from, also where the whole conversation is sent instead."""
    root: str = ""
    """What the provider alone has of the conversation; empty if the request has all of it."""
    journal: str = ""
    """The session that takes whatever passes of a conversation which the provider keeps."""

    @property
    def owner(self) -> bytes:
        """Whose conversation it is, whatever the provider has of it."""
        return owner_of(self.dialect, self.parsed_request.identity, self.key)

    @property
    def messages(self) -> tuple[bytes, ...]:
        return self.parsed_request.messages

    @property
    def wire(self) -> Wire:
        return wire_for(self.dialect.name)

    @property
    def agent(self) -> AgentIdentity:
        return AgentIdentity.of(self.parsed_request.instructions, self.setup.hashes["tools"])

    @property
    def hint(self) -> str:
        """The client's name of its conversation, in a field of the format or in a header."""
        name = self.parsed_request.body.get("prompt_cache_key")
        return name if isinstance(name, str) and name else self.conversation

    @property
    def title(self) -> str | None:
        """What it is about: how the user's own words begin.

        An agent's harness puts text of its own before them, and some agents examples: what comes
        before an answer that the gateway did not give may be one, so the newest turn counts.
        """
        prompts = list(islice(self._title_prompts(), _MAX_PROMPTS))
        texts = (*map(users_words, prompts), *prompts)
        words = next((line for text in texts if (line := _one_line(text[:1_000]))), None)
        if words is None:
            return None
        return words if len(words) <= _MAX_TITLE else f"{whole_words(words, _MAX_TITLE)}…"

    @property
    def sourced_title(self) -> Title | None:
        """The title, with the entry that will hold its words: it is forgotten with that entry."""
        title = self.title
        if title is None:
            return None
        words = title.removesuffix("…")
        for index, message in enumerate(self.messages):
            # A new session gets all messages in order, after its opening.
            texts = (shape.text for shape in self.wire.describe(message).shapes)
            if any(words in _one_line(text[:_MAX_SEARCHED]) for text in texts):
                return Title(title, _FIRST_MESSAGE + index)
        return Title(title, _FIRST_MESSAGE)

    def _title_prompts(self) -> Iterator[str]:
        """The prompts of the newest turn, or of all if the user wrote nothing in that."""
        answered = self.chain.answered
        turn = self.messages[answered[-1] + 1 :] if answered else self.messages
        has_words = any(map(users_words, self._prompts(turn)))
        return self._prompts(turn if has_words else self.messages)

    def _prompts(self, messages: Sequence[bytes]) -> Iterator[str]:
        for message in islice(messages, _MAX_SCANNED):
            shapes = self.wire.describe(message).shapes
            yield from (shape.text for shape in shapes if shape.kind == "prompt")


@dataclass
class SessionLease:
    """A request's use of its session, until it is answered."""

    incoming: IncomingRequest
    opened: GatewaySession
    resources: AsyncExitStack = field(repr=False)
    tip: int | None = 0
    """The entry of the session's newest mark, after which the answer must come. 0: it has none yet;
    None: the answer may come anywhere."""
    has_appended: bool = False
    """Messages were appended just now."""

    @property
    def session(self) -> Session:
        return self.opened.session

    async def append(self, new: int, first: Callable[[], Awaitable[object]] | None = None) -> None:
        """Append the messages from this index on; something else may have to be done first."""
        messages = self._new_messages(new)
        if messages:
            async with self.opened.turn:
                if first is not None:
                    await first()
                if self.incoming.recall is not None:
                    messages = await self.incoming.recall.answer_open_calls(self.session, messages)
                for turn, key in self._turns(messages):
                    await self._append(turn, key)

    async def append_all(self) -> None:
        """Append all messages to a new session, which nobody else knows and may find unfinished.

        A long history comes piece by piece: others are answered between the pieces. The last has
        the mark by which the session is found.
        """
        (opening, first), *turns = self._turns(self._new_messages(0))
        *before, last = _chunks(opening)
        async with self.opened.turn:
            for chunk in before:
                await self.session.say(*chunk)
                await asyncio.sleep(0)
            for messages, key in ((last, first), *turns):
                await self._append(messages, key)

    async def retry(self, seq: int) -> None:
        """Rewind to a request that was asked there; what came of it stays in the log."""
        if self.tip != seq:
            mark = Mark(key_of("asked", self.incoming.chain.end), 0, self.tip)
            async with self.opened.turn:
                self.tip = await self.session.rewind(seq, mark=mark)

    def answer_mark(self, payloads: Sequence[bytes]) -> Mark:
        """The mark of an answer, on its last message."""
        chain = extend_chain(self.incoming.dialect, self.incoming.chain.tip, payloads)
        return Mark(key_of("answered", chain.links[-1]), len(payloads) - 1, self.tip)

    def failure_mark(self) -> Mark:
        return Mark(key_of("failed", self.incoming.chain.end), 0, self.tip)

    async def release(self) -> None:
        await self.resources.aclose()

    def _new_messages(self, new: int) -> list[bytes]:
        fingerprint, messages = self.incoming.dialect.fingerprint, self.incoming.messages
        # Thoughts that came with the answer before are in the log already.
        if new and fingerprint(messages[new - 1]).answers:
            while new < len(messages) and fingerprint(messages[new]).blank:
                new += 1
        return list(messages[new:])

    def _turns(self, messages: Sequence[bytes]) -> list[tuple[Sequence[bytes], bytes]]:
        """The messages turn by turn, each with its mark.

        Turns that were passed on unmanaged get the marks that they would have got, so that clients
        can go back to them and other gateways see that they are logged.
        """
        chain, total = self.incoming.chain, len(self.incoming.messages)
        first = total - len(messages)
        prompts = [index for index in chain.prompts[-_MARKED_TURNS:] if first <= index < total - 1]
        answers = set(chain.answered)
        ends = [
            index
            for index in chain.answered
            if index >= first and index + 1 < total and index + 1 not in answers
        ][-_MARKED_TURNS:]
        keys = {index: key_of("asked", chain.content[index]) for index in prompts}
        keys |= {index: key_of("answered", chain.links[index]) for index in ends}
        turns: list[tuple[Sequence[bytes], bytes]] = []
        start = first
        for index, key in sorted(keys.items()):
            turns.append((messages[start - first : index + 1 - first], key))
            start = index + 1
        return [*turns, (messages[start - first :], key_of("asked", chain.end))]

    async def _append(self, messages: Sequence[bytes], key: bytes) -> None:
        mark = Mark(key, len(messages) - 1, self.tip)
        self.tip = (await self.session.say(*messages, mark=mark)).last
        self.has_appended = True


def _chunks(messages: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """The messages, as many together as are appended in a moment; a large one is alone."""
    start = size = 0
    for index, message in enumerate(messages):
        size += len(message)
        if index > start and (index - start >= _MAX_CHUNK or size > _MAX_CHUNK_BYTES):
            yield messages[start:index]
            start, size = index, len(message)
    yield messages[start:]


def _one_line(text: str) -> str:
    """The text on one line, without what a terminal obeys, or what is half a character."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
