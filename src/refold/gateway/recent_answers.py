"""The newest answers that were given here, by what an agent may make of them.

Two things that agents do break the chain of a conversation. Both are recognized by the words of an
answer:

- An agent compacts its own history: it asks for a summary, and then sends a history that begins
  with it. The words of the summary are in that history.
- An agent has another one do a part of the work: it calls a tool, and a history begins with words
  that stand in the call's arguments.

All of this is in memory. Processes of one service that answer large requests share what they
gave with the main one; other gateways don't know it. Whoever is not recognized begins a session of
their own; nothing is lost by it.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

from refold.errors import InvalidMessage
from refold.gateway.dialects.bounded_json import value_of
from refold.gateway.sessions import AgentIdentity
from refold.wire import Shape, Wire
from refold.wire.fingerprint import is_unique
from refold.wire.harness import users_words
from refold.wire.splice import parsed

_MAX_ANSWERS: Final = 2_000
_MAX_LINES: Final = 60
"""Lines of an answer that are remembered; in a history fifty times as many are looked at."""
_MAX_STRINGS: Final = 20
"""Texts in a call's arguments that are remembered."""
_MAX_CHARS: Final = 200_000
"""Longer messages are not looked at, nor is more of a text."""
_MIN_LINE: Final = 20
"""Shorter lines say too little to know an answer by them."""
_MIN_QUOTED: Final = 80
"""Characters of an answer that a history must quote."""
_MIN_ANSWER: Final = 160
"""And where the history has them in an answer: models say the same short things often."""
_MIN_SHARE: Final = 0.5
_MUCH_QUOTED: Final = 400
"""So many characters are enough, whatever share they are: agents cut a summary's preliminaries."""
_MIN_PROMPT: Final = 12
_MAX_OPENING: Final = 64
"""Messages of a history that are looked at, from its beginning."""


@dataclass(frozen=True, slots=True, eq=False)
class RecentAnswer:
    """An answer, and whose it was."""

    session: str
    """The session of the conversation: where another agent asked beside it, not that one's."""
    seq: int
    agent: AgentIdentity
    caller: tuple[str, bytes]
    """The tenant, and the seed of the caller's chains."""
    hint: str
    """What the client called its conversation; empty if it did not."""
    quotable: dict[bytes, int]
    """The digests of its lines, and how long each is."""


class History(NamedTuple):
    """A history that no session is known to have, and whose it is."""

    caller: tuple[str, bytes]
    agent: AgentIdentity
    hint: str
    wire: Wire
    messages: Sequence[bytes]

    def may_follow(self, answer: RecentAnswer) -> bool:
        """Whether it may be of the conversation in which an answer was given."""
        named = self.hint and answer.hint
        return answer.agent.is_like(self.agent) and (not named or self.hint == answer.hint)


class Delegation(NamedTuple):
    """A call that a conversation was begun by."""

    session: str
    call: str
    tool: str


Key = tuple[str, bytes, bytes]
Known = tuple[bytes, Delegation | None, bool]
"""By what an answer is known, the call that this stands in, and whether it names just one."""
Share = Callable[[list[Any]], None]
"""Is given an answer as JSON can say it."""


class RecentAnswers:
    """Finds what a history was made of, if it was made of an answer that was given here."""

    def __init__(self, share: Share | None = None, max_answers: int = _MAX_ANSWERS) -> None:
        self._share = share
        self._max_answers = max_answers
        self._answers: OrderedDict[int, tuple[RecentAnswer, list[Key]]] = OrderedDict()
        self._by_key: dict[Key, tuple[int, Delegation | None]] = {}
        self._next = 0

    def add(self, answer: RecentAnswer, wire: Wire, payloads: Sequence[bytes]) -> None:
        """An answer was given."""
        found = [*self._keys(answer, wire, payloads)]
        self._put(answer, found)
        if self._share is not None:
            self._share(_shared(answer, found))

    def take(self, shared: Sequence[Any]) -> None:
        """An answer was given in another process, which shares it."""
        self._put(*_taken(shared))

    def _put(self, answer: RecentAnswer, found: Iterable[Known]) -> None:
        tenant, seed = answer.caller
        number = self._next = self._next + 1
        keys: list[Key] = []
        for key, delegation, names_one in found:
            whole = (tenant, seed, key)
            known = self._by_key.get(whole)
            # An id that comes twice names nothing, nor does a line that two conversations have.
            twice = known is not None and (names_one or self._is_of_another(known[0], answer))
            self._by_key[whole] = (0 if twice else number), delegation
            keys.append(whole)
        self._answers[number] = answer, keys
        while len(self._answers) > self._max_answers:
            oldest, (_, gone) = self._answers.popitem(last=False)
            for key in gone:
                if self._by_key.get(key, (oldest, None))[0] in {0, oldest}:
                    self._by_key.pop(key, None)

    def _is_of_another(self, number: int, answer: RecentAnswer) -> bool:
        if number not in self._answers:
            return number == 0
        return self._answers[number][0].session != answer.session

    def compacted(self, history: History) -> str | None:
        """The session whose history a client has shortened to this one, if there is one."""
        quoted, in_prompts = self._quoted(history)
        newest = self._newest(history)
        for number, chars in [*quoted.most_common(3), (newest, 0)]:
            if number not in self._answers:
                continue
            answer, _ = self._answers[number]
            whole = sum(answer.quotable.values())
            least = _MIN_QUOTED if in_prompts[number] == chars else _MIN_ANSWER
            much = chars >= _MUCH_QUOTED or chars >= max(least, _MIN_SHARE * whole)
            if history.may_follow(answer) and (much or (number == newest and not chars)):
                return answer.session
        return None

    def _quoted(self, history: History) -> tuple[Counter[int], Counter[int]]:
        """How many characters of which answers a history quotes, whole lines; those in prompts."""
        quoted: Counter[int] = Counter()
        in_prompts: Counter[int] = Counter()
        seen: set[bytes] = set()
        for shape in _shapes(history.wire, history.messages):
            if shape.kind not in {"prompt", "text"}:
                continue
            for key, length in _lines(shape.text, _MAX_LINES * 50):
                found = self._by_key.get((*history.caller, key))
                if found is not None and key not in seen:
                    seen.add(key)
                    quoted[found[0]] += length
                    in_prompts[found[0]] += length if shape.kind == "prompt" else 0
        return quoted, in_prompts

    def _newest(self, history: History) -> int:
        """The answer that the newest name in a history is of; 0 if it names none."""
        newest = 0
        for message in history.messages[-_MAX_OPENING:]:
            for key in _names(history.wire, message):
                newest = self._by_key.get((*history.caller, key), (0, None))[0]
        return newest

    def delegated(self, history: History) -> Delegation | None:
        """The call that a conversation with this history was begun by, if it is known."""
        for shape in _shapes(history.wire, history.messages):
            if shape.kind == "prompt":
                for words in (shape.text, users_words(shape.text)):
                    _, found = self._by_key.get((*history.caller, _prompt_key(words)), (0, None))
                    if found is not None:
                        return found
        return None

    @staticmethod
    def _keys(answer: RecentAnswer, wire: Wire, payloads: Sequence[bytes]) -> Iterator[Known]:
        for key in answer.quotable:
            yield key, None, False
        for payload in payloads:
            for key in _names(wire, payload):
                yield key, None, True
        for shape in _shapes(wire, payloads):
            if shape.kind != "call":
                continue
            delegation = Delegation(answer.session, shape.call or "", shape.tool or "")
            for words in _strings(shape.text):
                yield _prompt_key(words), delegation, False


def _shared(answer: RecentAnswer, found: Iterable[Known]) -> list[Any]:
    tenant, seed = answer.caller
    quotable = {key.hex(): chars for key, chars in answer.quotable.items()}
    known = [(key.hex(), delegation, names_one) for key, delegation, names_one in found]
    return [
        answer.session,
        answer.seq,
        answer.agent,
        tenant,
        seed.hex(),
        answer.hint,
        quotable,
        known,
    ]


def _taken(shared: Sequence[Any]) -> tuple[RecentAnswer, list[Known]]:
    session, seq, agent, tenant, seed, hint, quotable, known = shared
    answer = RecentAnswer(
        session,
        seq,
        AgentIdentity(*agent),
        (tenant, bytes.fromhex(seed)),
        hint,
        {bytes.fromhex(key): chars for key, chars in quotable.items()},
    )
    return answer, [
        (bytes.fromhex(key), delegation and Delegation(*delegation), names_one)
        for key, delegation, names_one in known
    ]


def quotable(wire: Wire, payloads: Sequence[bytes]) -> dict[bytes, int]:
    """The lines of an answer by which a summary is known; none of answers with calls."""
    shapes = list(_shapes(wire, payloads))
    if any(shape.kind == "call" for shape in shapes):
        return {}
    texts = (shape.text for shape in shapes if shape.kind == "text")
    return {key: length for text in texts for key, length in _lines(text, _MAX_LINES)}


def _shapes(wire: Wire, messages: Sequence[bytes]) -> Iterator[Shape]:
    for message in messages[:_MAX_OPENING]:
        if len(message) > _MAX_CHARS:
            continue
        try:
            yield from wire.describe(message).shapes
        except InvalidMessage:
            continue


def _names(wire: Wire, message: bytes) -> Iterator[bytes]:
    """The provider's names of an answer's message: of the answer itself, and of its calls."""
    if len(message) > _MAX_CHARS:
        return
    try:
        described = wire.describe(message)
    except InvalidMessage:
        return
    if described.role != "assistant":
        return
    own = parsed(message).get("id")
    if isinstance(own, str) and is_unique(own):
        yield _digest("id", own)
    for shape in described.shapes:
        if shape.kind == "call" and shape.call and is_unique(shape.call):
            yield _digest("call", shape.tool or "", shape.call)


def _lines(text: str, most: int) -> Iterator[tuple[bytes, int]]:
    for line in text[:_MAX_CHARS].splitlines()[:most]:
        words = " ".join(line.split())
        if len(words) >= _MIN_LINE:
            yield _digest("line", words), len(words)


def _strings(arguments: str) -> Iterator[str]:
    if len(arguments) > _MAX_CHARS:
        return
    try:
        value = value_of(arguments.encode(errors="surrogatepass"))
    except ValueError:
        return
    found = (one for one in _inner([value]) if len(one.strip()) >= _MIN_PROMPT)
    yield from islice(found, _MAX_STRINGS)


def _inner(values: Iterable[JsonValue]) -> Iterator[str]:
    for value in values:
        match value:
            case str():
                yield value
            case dict():
                yield from _inner(value.values())
            case list():
                yield from _inner(value)
            case _:
                pass


def _prompt_key(text: str) -> bytes:
    return _digest("prompt", " ".join(text.split()))


def _digest(*values: str) -> bytes:
    digest = blake2b(digest_size=8)
    for value in values:
        data = value.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()
