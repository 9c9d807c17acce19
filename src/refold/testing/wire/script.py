"""Scripts: conversations without a format, and the faults that real histories have.

A spelling writes a script as native messages. The strategies draw little and derive the rest, so
that a conversation of forty messages costs a few milliseconds.
"""

import json
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Final, NamedTuple, Protocol, TypeVar

from hypothesis import strategies as st
from pydantic import JsonValue

_T = TypeVar("_T")


class Thought(NamedTuple):
    text: str
    signed: bool


class Call(NamedTuple):
    id: str
    tool: str
    args: dict[str, JsonValue]


class Return(NamedTuple):
    call: str
    tool: str
    content: JsonValue
    media: bool = False
    error: bool = False


class Told(NamedTuple):
    text: str


class Asked(NamedTuple):
    text: str
    listed: bool = False
    """The content is a list of items, where the format has such a thing."""
    media: bool = False
    foreign: bool = False
    """With something in it that no wire knows."""


class Responded(NamedTuple):
    text: str | None
    calls: tuple[Call, ...] = ()
    thought: Thought | None = None
    foreign: bool = False


class Answered(NamedTuple):
    returns: tuple[Return, ...]
    words: str | None = None
    """What the user adds in the same breath."""


Said = Told | Asked | Responded | Answered

PROMPTS = (
    "And now?",
    "Please look at src/app_main.py and tell me why the test fails.",
    "価格表を日本語で要約してください。",
    "Zürich — naïve “quotes” \\ and\ttabs 🙂",
    "A longer wish. " * 60,
)
REPLIES = (
    "Done.",
    "The fault is in `parse()`, line 42: it takes the first match.",
    "要約: 三つの変更があります。",
    '{"answer": 42}',
    "Step by step.\n\n" * 40,
)
RESULTS: tuple[JsonValue, ...] = (
    "",
    "ok",
    "def parse(text):\n    return text.split()\n",
    "line of output\n" * 200,
    "ファイルの内容です。" * 300,
    "x" * 21_000,
    {"rows": [{"id": 1, "price": 1.5}, {"id": 2, "price": None}], "next": False},
    [1, 2.5, "three", None],
    {"text": "nested " * 400, "code": 0},
)
WISHES: tuple[tuple[str, dict[str, JsonValue]], ...] = (
    ("read_file", {"path": "src/app_main.py"}),
    ("read_file", {"path": "docs/読んで.md", "from": 1}),
    ("search", {"query": 'why "this" fails', "limit": 5, "exact": True}),
    ("write_file", {"path": "a.txt", "content": "line\n" * 300}),
    ("list_files", {}),
)
THOUGHTS = (
    Thought("First the file, then the test.", signed=False),
    Thought("署名された考え。", signed=True),
    Thought("Hm. " * 200, signed=True),
)

_THOUGHTS = (None, None, *THOUGHTS)
_OPENINGS = (None, None, "On it.", "見てみます。")
_FORMS = (
    *[Asked("")] * 3,
    Asked("", listed=True),
    Asked("", listed=True, media=True),
    Asked("", listed=True, foreign=True),
)
_MOVES = 1 << 24  # beyond, hypothesis no longer draws evenly


class _Dice:
    """One drawn number, taken apart into many choices; zero is the plainest of all."""

    def __init__(self, number: int) -> None:
        self._left = number

    def of(self, options: Sequence[_T]) -> _T:
        self._left, index = divmod(self._left, len(options))
        return options[index]

    def more(self, count: int) -> list["_Dice"]:
        return [_Dice(self._left * (2 * nth + 1)) for nth in range(count)]


@st.composite
def scripts(draw: st.DrawFn, *, max_moves: int = 24) -> list[Said]:
    """Legal conversations: tool loops, parallel calls, media, thoughts, unknown content.

    A move is a prompt with the reply before it, or a call with its return. They end where a
    request would be made, or with a reply.
    """
    size = draw(st.integers(1, max_moves))
    moves = draw(st.lists(st.integers(0, _MOVES - 1), min_size=size, max_size=size))
    return _play(moves, system=draw(st.booleans()), replied=draw(st.booleans()))


def _play(moves: Sequence[int], *, system: bool, replied: bool) -> list[Said]:
    said: list[Said] = [Told("Be brief.")] if system else []
    for move in moves:
        dice = _Dice(move)
        begins = isinstance(said[-1], Told) if said else True
        if dice.of((True, False, False)) or begins:
            said += [] if begins else [_reply(dice)]
            said.append(dice.of(_FORMS)._replace(text=dice.of(PROMPTS)))
        else:
            said += _step(dice, len(said))
    return [*said, _reply(_Dice(len(said)))] if replied else said


def _reply(dice: _Dice) -> Responded:
    return Responded(dice.of(REPLIES), thought=dice.of(_THOUGHTS))


def _step(dice: _Dice, step: int) -> tuple[Responded, Answered]:
    odd = dice.of((0, 0, 0, 0, 1, 2))
    response = Responded(dice.of(_OPENINGS), (), dice.of(_THOUGHTS), foreign=odd == 1)
    calls: list[Call] = []
    returns: list[Return] = []
    for nth, each in enumerate(dice.more(dice.of((1, 1, 2, 3)))):
        (tool, args), content, form = each.of(WISHES), each.of(RESULTS), each.of((0, 0, 0, 1, 2))
        calls.append(Call(f"call_{step}_{nth}", tool, args))
        returns.append(Return(calls[-1].id, tool, content, media=form == 1, error=form == 2))
    words = "Wait, one more thing." if odd == 2 else None
    return response._replace(calls=tuple(calls)), Answered(tuple(returns), words)


# Faults of real histories: crashes, interrupted streams, lost writes, clients that send messages
# twice or out of order. Each fault turns a legal script into another one.

Fault = Callable[[Sequence[Said], int], list[Said]]
"""Makes a fault at a position; a script without such a position stays as it is."""


def _answer_fault(make: Callable[[Sequence[Said], int], list[Said]]) -> Fault:
    """A fault at one of the script's `Answered`, which always follow their response."""

    @wraps(make)
    def fault(said: Sequence[Said], position: int) -> list[Said]:
        answers = [index for index, item in enumerate(said) if isinstance(item, Answered)]
        return make(said, answers[position % len(answers)]) if answers else list(said)

    return fault


@_answer_fault
def unanswered(said: Sequence[Said], index: int) -> list[Said]:
    """The returns of a response are lost."""
    return [*said[:index], *said[index + 1 :]]


@_answer_fault
def half_answered(said: Sequence[Said], index: int) -> list[Said]:
    """One return of several is lost."""
    match said[index]:
        case Answered(returns=(_, *rest), words=words) if rest or words:
            return [*said[:index], Answered(tuple(rest), words), *said[index + 1 :]]
        case _:
            return [*said[:index], *said[index + 1 :]]


@_answer_fault
def orphaned(said: Sequence[Said], index: int) -> list[Said]:
    """A response is lost, and its returns are not."""
    return [*said[: max(0, index - 1)], *said[index:]]


@_answer_fault
def late(said: Sequence[Said], index: int) -> list[Said]:
    """The returns come after another exchange."""
    return [*said[:index], Asked("Are you there?"), Responded("Yes."), *said[index:]]


@_answer_fault
def split(said: Sequence[Said], index: int) -> list[Said]:
    """The user speaks before the tools do."""
    return [*said[:index], Asked("Hurry!"), *said[index:]]


@_answer_fault
def answered_twice(said: Sequence[Said], index: int) -> list[Said]:
    return [*said[: index + 1], *said[index:]]


@_answer_fault
def called_twice(said: Sequence[Said], index: int) -> list[Said]:
    """Two calls of one response have the same id."""
    match said[index - 1] if index else None:
        case Responded(calls=(first, *rest)) as response:
            twice = response._replace(calls=(first, first, *rest))
            return [*said[: index - 1], twice, *said[index:]]
        case _:
            return list(said)


@_answer_fault
def before_the_call(said: Sequence[Said], index: int) -> list[Said]:
    """The returns come before the response that calls."""
    if not index:
        return list(said)
    return [*said[: index - 1], said[index], said[index - 1], *said[index + 1 :]]


def stray(said: Sequence[Said], position: int) -> list[Said]:
    """A return of a call that nobody made."""
    index = position % (len(said) + 1)
    return [*said[:index], Answered((Return("call_nobody", "search", "stray"),)), *said[index:]]


def dangling(said: Sequence[Said], position: int) -> list[Said]:
    """It ends with a call, as after a crash."""
    index = position % (len(said) + 1)
    return [*said[:index], Responded(None, (Call("call_last", "search", {"query": "?"}),))]


def cut(said: Sequence[Said], position: int) -> list[Said]:
    """It begins in the middle."""
    return list(said[position % len(said) :]) if said else []


def repeated(said: Sequence[Said], position: int) -> list[Said]:
    index = position % max(1, len(said))
    return [*said[: index + 1], *said[index:]]


def lost(said: Sequence[Said], position: int) -> list[Said]:
    if len(said) <= 1:
        return list(said)
    index = position % len(said)
    return [*said[:index], *said[index + 1 :]]


FAULTS: Final[tuple[Fault, ...]] = (
    unanswered,
    half_answered,
    orphaned,
    late,
    split,
    answered_twice,
    called_twice,
    before_the_call,
    stray,
    dangling,
    cut,
    repeated,
    lost,
)

_faults = st.lists(st.tuples(st.sampled_from(FAULTS), st.integers(0, 40)), min_size=1, max_size=4)


@st.composite
def faulty(draw: st.DrawFn, legal: st.SearchStrategy[list[Said]]) -> list[Said]:
    said = draw(legal)
    for fault, position in draw(_faults):
        said = fault(said, position)
    return said


Object = dict[str, JsonValue]
Json = Callable[[JsonValue], bytes]


class Spelling(Protocol):
    def spell(self, said: Said) -> Sequence[Object]: ...


def _json(value: JsonValue) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _spaced(value: JsonValue) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _escaped(value: JsonValue) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


_styles: st.SearchStrategy[Json] = st.sampled_from([_json, _spaced, _escaped])


def as_text(content: JsonValue) -> str:
    if isinstance(content, str):
        return content
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


@st.composite
def payloads(
    draw: st.DrawFn, scripts: st.SearchStrategy[list[Said]], spelling: Spelling
) -> list[bytes]:
    style = draw(_styles)
    return [style(message) for said in draw(scripts) for message in spelling.spell(said)]
