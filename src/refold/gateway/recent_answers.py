"""The newest answers of this process, by their marks and by what an agent may make of them.

Two things that agents do break the chain of a conversation. Both are recognized by the words of an
answer:

- An agent compacts its own history: it asks for a summary, and then sends a history that begins
  with it. The words of the summary are in that history.
- An agent has another one do a part of the work: it calls a tool, and a history begins with words
  that stand in the call's arguments.

All of this is in memory. Processes of one service that answer large requests share their answers
with the main one; other gateways don't have them. A history that is not recognized begins a session
of its own; nothing is lost by it.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

from refold.errors import InvalidMessage
from refold.gateway.incoming import Chain, Continue, key_of
from refold.gateway.sessions import AgentIdentity
from refold.wire import Shape, Wire
from refold.wire.fingerprint import digest, is_unique, single_spaced, users_words
from refold.wire.splice import bounded_json, parsed

_MAX_ANSWERS: Final = 2_000
_MAX_CACHED: Final = 10_000
_DIGEST_SIZE: Final = 8
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


class AnswerCache:
    """Where to find each answer that no request has continued yet, to save a lookup in the log.

    It is a guess: another process may have continued the session, or it may be gone. Whoever uses
    it appends after the mark that was the newest then, and looks it up when the log disagrees.
    """

    def __init__(self, max_answers: int = _MAX_CACHED) -> None:
        self._max_answers = max_answers
        self._answers: OrderedDict[tuple[str, bytes], tuple[str, int] | None] = OrderedDict()
        self._requests: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def put(self, tenant: str, key: bytes, session: str, seq: int) -> None:
        """Add an answer. If two are identical, neither is returned."""
        place = tenant, key
        self._answers[place] = None if place in self._answers else (session, seq)
        self._answers.move_to_end(place)
        if len(self._answers) > self._max_answers:
            self._answers.popitem(last=False)

    def take(self, tenant: str, chain: Chain) -> Continue | None:
        """Where a request continues, if its newest answer is here; the next one must look it up.

        So must a repeated request: another client may have received the same answer since.
        """
        if not chain.answered or self._is_asked_again(tenant, chain.end):
            return None
        index = chain.answered[-1]
        key = tenant, key_of("answered", chain.links[index])
        if self._answers.get(key) is None:
            return None
        session, seq = self._answers.pop(key) or ("", 0)
        return Continue(session, seq, index + 1)

    def _is_asked_again(self, tenant: str, end: bytes) -> bool:
        request = tenant, end
        known = request in self._requests
        self._requests[request] = None
        self._requests.move_to_end(request)
        if len(self._requests) > self._max_answers:
            self._requests.popitem(last=False)
        return known


@dataclass(frozen=True, slots=True, eq=False)
class RecentAnswer:
    """An answer, and whose it was."""

    session: str
    """The session of the conversation; not that of another agent that only reads along."""
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
AnswerKey = tuple[bytes, Delegation | None, bool]
"""A digest that identifies an answer, the call that it is from, and whether it is an id."""
Share = Callable[[list[Any]], None]
"""Called with an answer as JSON values."""


class RecentAnswers:
    """Finds what a history was made of, if it was made of an answer that was given here."""

    def __init__(self, share: Share | None = None, max_answers: int = _MAX_ANSWERS) -> None:
        self._share = share
        self._max_answers = max_answers
        self._answers: OrderedDict[int, tuple[RecentAnswer, list[Key]]] = OrderedDict()
        self._by_key: dict[Key, tuple[int, Delegation | None]] = {}
        self._next = 0

    def add(self, answer: RecentAnswer, wire: Wire, payloads: Sequence[bytes]) -> None:
        """Add an answer that was given here."""
        keys = [*_answer_keys(answer, wire, payloads)]
        self._put(answer, keys)
        if self._share is not None:
            tenant, seed = answer.caller
            quotes = {key.hex(): chars for key, chars in answer.quotable.items()}
            self._share(
                [
                    *(answer.session, answer.seq, answer.agent, tenant, seed.hex(), answer.hint),
                    quotes,
                    [(key.hex(), delegation, is_id) for key, delegation, is_id in keys],
                ]
            )

    def take(self, shared: Sequence[Any]) -> None:
        """Add an answer that another process gave and shares."""
        session, seq, agent, tenant, seed, hint, quotes, keys = shared
        caller = tenant, bytes.fromhex(seed)
        quotes = {bytes.fromhex(key): chars for key, chars in quotes.items()}
        answer = RecentAnswer(session, seq, AgentIdentity(*agent), caller, hint, quotes)
        self._put(
            answer,
            (
                (bytes.fromhex(key), delegation and Delegation(*delegation), is_id)
                for key, delegation, is_id in keys
            ),
        )

    def _put(self, answer: RecentAnswer, answer_keys: Iterable[AnswerKey]) -> None:
        number = self._next = self._next + 1
        keys: list[Key] = []
        for name, delegation, is_id in answer_keys:
            key = (*answer.caller, name)
            before = self._by_key.get(key)
            # An id that comes twice names nothing, nor does a line that two conversations have.
            twice = before is not None and (is_id or self._is_of_another(before[0], answer))
            self._by_key[key] = (0 if twice else number), delegation
            keys.append(key)
        self._answers[number] = answer, keys
        while len(self._answers) > self._max_answers:
            oldest, (_, dropped) = self._answers.popitem(last=False)
            for key in dropped:
                if self._by_key.get(key, (oldest, None))[0] in {0, oldest}:
                    self._by_key.pop(key, None)

    def _is_of_another(self, number: int, answer: RecentAnswer) -> bool:
        if number not in self._answers:
            return number == 0
        return self._answers[number][0].session != answer.session

    def compacted(self, history: History) -> str | None:
        """The session whose history a client has shortened to this one, if there is one."""
        quoted, in_prompts = self._quoted(history)
        last = self._last_named(history)
        for number, chars in [*quoted.most_common(3), (last, 0)]:
            if number not in self._answers:
                continue
            answer, _ = self._answers[number]
            total = sum(answer.quotable.values())
            minimum = _MIN_QUOTED if in_prompts[number] == chars else _MIN_ANSWER
            much = chars >= _MUCH_QUOTED or chars >= max(minimum, _MIN_SHARE * total)
            if history.may_follow(answer) and (much or (number == last and not chars)):
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
                number, _ = self._by_key.get((*history.caller, key), (None, None))
                if number is not None and key not in seen:
                    seen.add(key)
                    quoted[number] += length
                    in_prompts[number] += length if shape.kind == "prompt" else 0
        return quoted, in_prompts

    def _last_named(self, history: History) -> int:
        """The answer that the last name in a history is of; 0 if it names none."""
        last = 0
        for message in history.messages[-_MAX_OPENING:]:
            for key in _names(history.wire, message):
                last = self._by_key.get((*history.caller, key), (0, None))[0]
        return last

    def delegated(self, history: History) -> Delegation | None:
        """The call that began a conversation with this history, if it is known."""
        for shape in _shapes(history.wire, history.messages):
            if shape.kind == "prompt":
                for words in (shape.text, users_words(shape.text)):
                    key = *history.caller, _prompt_key(words)
                    _, delegation = self._by_key.get(key, (0, None))
                    if delegation is not None:
                        return delegation
        return None


def _answer_keys(
    answer: RecentAnswer, wire: Wire, payloads: Sequence[bytes]
) -> Iterator[AnswerKey]:
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


def quotable(wire: Wire, payloads: Sequence[bytes]) -> dict[bytes, int]:
    """The lines of an answer that identify a summary; none of answers with calls."""
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


def _lines(text: str, max_lines: int) -> Iterator[tuple[bytes, int]]:
    for line in text[:_MAX_CHARS].splitlines()[:max_lines]:
        words = single_spaced(line)
        if len(words) >= _MIN_LINE:
            yield _digest("line", words), len(words)


def _strings(arguments: str) -> Iterator[str]:
    if len(arguments) > _MAX_CHARS:
        return
    try:
        value = bounded_json(arguments.encode(errors="surrogatepass"))
    except ValueError:
        return
    texts = (text for text in _texts_in([value]) if len(text.strip()) >= _MIN_PROMPT)
    yield from islice(texts, _MAX_STRINGS)


def _texts_in(values: Iterable[JsonValue]) -> Iterator[str]:
    for value in values:
        match value:
            case str():
                yield value
            case dict():
                yield from _texts_in(value.values())
            case list():
                yield from _texts_in(value)
            case _:
                pass


def _prompt_key(text: str) -> bytes:
    return _digest("prompt", single_spaced(text))


def _digest(*values: str) -> bytes:
    return digest(*values, size=_DIGEST_SIZE)
