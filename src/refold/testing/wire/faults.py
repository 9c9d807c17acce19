"""What goes wrong in histories: each fault makes another script of a legal one.

Crashes, interrupted streams, lost writes, clients that send things twice or out of order.
"""

from collections.abc import Callable, Sequence
from typing import Final

from hypothesis import strategies as st

from refold.testing.wire.script import Answered, Asked, Call, Responded, Return, Said

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
    """Scripts with one fault or more; some of them harmless."""
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
