"""Conversations without a format: who says what, in which order.

A script is what a spelling writes as native messages. Its strategies draw little and derive the
rest, so that a conversation of forty messages costs a few milliseconds.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from hypothesis import strategies as st
from pydantic import JsonValue

_T = TypeVar("_T")


class Thought(NamedTuple):
    """What the model thinks before it speaks."""

    text: str
    signed: bool


class Call(NamedTuple):
    """A call of a tool."""

    id: str
    tool: str
    args: dict[str, JsonValue]


class Return(NamedTuple):
    """What a tool returned: text or JSON, or a picture beside the text."""

    call: str
    tool: str
    content: JsonValue
    media: bool = False
    error: bool = False


class Told(NamedTuple):
    """System content, at the beginning."""

    text: str


class Asked(NamedTuple):
    """What the user says."""

    text: str
    listed: bool = False
    """The content is a list of items, where the format has such a thing."""
    media: bool = False
    foreign: bool = False
    """With something in it that no wire knows."""


class Responded(NamedTuple):
    """What the model answers."""

    text: str | None
    calls: tuple[Call, ...] = ()
    thought: Thought | None = None
    foreign: bool = False


class Answered(NamedTuple):
    """What the tools returned to the calls of one response."""

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
        """That many, each with other choices left."""
        return [_Dice(self._left * (2 * nth + 1)) for nth in range(count)]


@st.composite
def scripts(draw: st.DrawFn, *, most: int = 24) -> list[Said]:
    """Legal conversations: tool loops, several calls at once, media, thoughts, foreign things.

    A move is a prompt with the reply before it, or a call with its return. They end where a
    request would be made, or with a reply.
    """
    size = draw(st.integers(1, most))
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
