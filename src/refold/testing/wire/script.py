"""Conversations without a format: who says what, in which order.

A script is what a spelling writes as native messages. Its strategies draw little and derive the
rest, so that a conversation of forty messages costs a few milliseconds.
"""

import json
from collections.abc import Callable, Sequence
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
        self._left, at = divmod(self._left, len(options))
        return options[at]

    def more(self, count: int) -> list["_Dice"]:
        return [_Dice(self._left * (2 * nth + 1)) for nth in range(count)]


@st.composite
def scripts(draw: st.DrawFn, *, max_moves: int = 24) -> list[Said]:
    """Legal conversations: tool loops, several calls at once, media, thoughts, foreign things.

    A move is a prompt with the reply before it, or a call with its return. They end where a
    request would be made, or with a reply.
    """
    size = draw(st.integers(1, max_moves))
    moves = draw(st.lists(st.integers(0, _MOVES - 1), min_size=size, max_size=size))
    return _played(moves, told=draw(st.booleans()), replied=draw(st.booleans()))


def _played(moves: Sequence[int], *, told: bool, replied: bool) -> list[Said]:
    said: list[Said] = [Told("Be brief.")] if told else []
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


def _step(dice: _Dice, at: int) -> tuple[Responded, Answered]:
    odd = dice.of((0, 0, 0, 0, 1, 2))
    response = Responded(dice.of(_OPENINGS), (), dice.of(_THOUGHTS), foreign=odd == 1)
    calls: list[Call] = []
    returns: list[Return] = []
    for nth, each in enumerate(dice.more(dice.of((1, 1, 2, 3)))):
        (tool, args), content, form = each.of(WISHES), each.of(RESULTS), each.of((0, 0, 0, 1, 2))
        calls.append(Call(f"call_{at}_{nth}", tool, args))
        returns.append(Return(calls[-1].id, tool, content, media=form == 1, error=form == 2))
    words = "Wait, one more thing." if odd == 2 else None
    return response._replace(calls=tuple(calls)), Answered(tuple(returns), words)


# What goes wrong in histories: each fault makes another script of a legal one.
#
# Crashes, interrupted streams, lost writes, clients that send things twice or out of order.

Fault = Callable[[Sequence[Said], int], list[Said]]
"""Makes a fault at a position; a script without such a position stays as it is."""


def unanswered(said: Sequence[Said], at: int) -> list[Said]:
    """The returns of a response are lost."""
    return _without(said, _nth(said, Answered, at))


def half_answered(said: Sequence[Said], at: int) -> list[Said]:
    """One return of several is lost."""
    where = _nth(said, Answered, at)
    match said[where] if where is not None else None:
        case Answered(returns=(_, *rest), words=words) if rest or words:
            return _with(said, where, Answered(tuple(rest), words))
        case _:
            return _without(said, where)


def orphaned(said: Sequence[Said], at: int) -> list[Said]:
    """A response is lost, and its returns are not."""
    return _without(said, _nth(said, Answered, at), before=1)


def late(said: Sequence[Said], at: int) -> list[Said]:
    """The returns come after another exchange."""
    where = _nth(said, Answered, at)
    if where is None:
        return list(said)
    between = [Asked("Are you there?"), Responded("Yes.")]
    return [*said[:where], *between, *said[where:]]


def split(said: Sequence[Said], at: int) -> list[Said]:
    """The user speaks before the tools do."""
    where = _nth(said, Answered, at)
    return list(said) if where is None else [*said[:where], Asked("Hurry!"), *said[where:]]


def answered_twice(said: Sequence[Said], at: int) -> list[Said]:
    """The returns come twice."""
    where = _nth(said, Answered, at)
    return list(said) if where is None else [*said[: where + 1], *said[where:]]


def called_twice(said: Sequence[Said], at: int) -> list[Said]:
    """Two calls of one response have the same id."""
    where = _nth(said, Answered, at)
    match said[where - 1] if where else None:
        case Responded(calls=(first, *rest)) as response:
            twice = response._replace(calls=(first, first, *rest))
            return _with(said, (where or 0) - 1, twice)
        case _:
            return list(said)


def before_the_call(said: Sequence[Said], at: int) -> list[Said]:
    """The returns come before the response that calls."""
    where = _nth(said, Answered, at)
    if not where:
        return list(said)
    return [*said[: where - 1], said[where], said[where - 1], *said[where + 1 :]]


def stray(said: Sequence[Said], at: int) -> list[Said]:
    """A return of a call that nobody made."""
    where = at % (len(said) + 1)
    lost = Answered((Return("call_nobody", "search", "stray"),))
    return [*said[:where], lost, *said[where:]]


def dangling(said: Sequence[Said], at: int) -> list[Said]:
    """It ends with a call, as after a crash."""
    where = at % (len(said) + 1)
    return [*said[:where], Responded(None, (Call("call_last", "search", {"query": "?"}),))]


def cut(said: Sequence[Said], at: int) -> list[Said]:
    """It begins in the middle."""
    return list(said[at % len(said) :]) if said else []


def repeated(said: Sequence[Said], at: int) -> list[Said]:
    """Something is said twice."""
    where = at % max(1, len(said))
    return [*said[: where + 1], *said[where:]]


def lost(said: Sequence[Said], at: int) -> list[Said]:
    """Something was not stored."""
    return (_without(said, at % len(said)) if said else []) or list(said)


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

_planted = st.lists(st.tuples(st.sampled_from(FAULTS), st.integers(0, 40)), min_size=1, max_size=4)


@st.composite
def faulty(draw: st.DrawFn, legal: st.SearchStrategy[list[Said]]) -> list[Said]:
    said = draw(legal)
    for fault, at in draw(_planted):
        said = fault(said, at)
    return said


def _nth(said: Sequence[Said], kind: type[Said], at: int) -> int | None:
    places = [where for where, one in enumerate(said) if isinstance(one, kind)]
    return places[at % len(places)] if places else None


def _with(said: Sequence[Said], where: int | None, new: Said) -> list[Said]:
    return [new if at == where else one for at, one in enumerate(said)]


def _without(said: Sequence[Said], where: int | None, before: int = 0) -> list[Said]:
    gone = None if where is None else where - before
    return [one for at, one in enumerate(said) if at != gone]


# How a script is written in a format, and in which spelling of JSON.

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
    return [style(message) for one in draw(scripts) for message in spelling.spell(one)]
