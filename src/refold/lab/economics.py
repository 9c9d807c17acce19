"""What fold times cost: a row's own, and the best that there could have been.

The model is of input alone, in prices of a token that is neither read from a cache nor written into
it. A request reads what the one before had and writes what is new. A fold writes `Terms.fold`
tokens in place of all messages; after a pause that is longer than the cache's lifetime, everything
is written anyway. Instructions and tools begin each request, and no fold moves them.

`bound` knows the future, pays for no summary and reads nothing again, so no rule can be cheaper at
that fold size. It has one size for all rows: with each row's own, a larger fold would raise its own
bound. *Timing* is what a row's fold times cost in the model, and *all in* what the row itself
costs: its own requests and folds, its summaries, and what its model must read again.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from refold.lab.content import Miss
from refold.lab.messages import Reader
from refold.lab.replay import Conditions, Replay, requests_of
from refold.models import Prices
from refold.transcripts.recording import Recording

FOLD: Final = 20_000
"""Tokens that a fold leaves: the size that all rows are compared at."""
_BROKEN = 0.9  # of what was sent before: where less of it comes again, it was rewritten


@dataclass(frozen=True, slots=True)
class Terms:
    """What a token of input costs, in prices of one that is in no cache."""

    read: float = 0.1
    write: float = 1.25
    output: float = 5.0
    """A token of a summary that a model writes."""
    fixed: int = 0
    """Tokens of instructions and tools."""
    fold: int = FOLD

    @classmethod
    def of(cls, prices: Prices, fixed: int = 0, fold: int = FOLD) -> "Terms":
        """The terms of published prices. Without prices for a cache, all tokens cost the same."""
        base = prices.input or 1.0
        read, write, output = (
            base if price is None else price
            for price in (prices.cache_read, prices.cache_write, prices.output)
        )
        ratios = (round(price / base, 6) for price in (read, write, output))
        return cls(*ratios, fixed=fixed, fold=fold)


class Step(NamedTuple):
    """One request of a session that is never folded."""

    size: int
    """Tokens of all messages so far."""
    cold: bool = False
    """Whether nothing of it was in the cache; the first never is."""


class Account(NamedTuple):
    """What a row costs, beside the least that its session could have cost."""

    bound: float
    timing: float
    own: float
    """Its requests and summaries."""
    rereads: float
    misses: int
    """How often something had to be read again."""

    @classmethod
    def of(cls, accounts: Iterable["Account"]) -> "Account":
        """The sums over several sessions."""
        sums = [sum(column) for column in zip(*accounts, strict=True)]
        return cls(*sums[:-1], misses=round(sums[-1]))

    @property
    def all_in(self) -> float:
        return self.own + self.rereads


def steps(recording: Recording, reader: Reader, conditions: Conditions) -> tuple[Step, ...]:
    """The requests of a session, as they would be if it were never folded."""
    cold = dict(requests_of(recording, reader, conditions.lifetime))
    found: list[Step] = []
    size = 0
    for index, payload in enumerate(recording.payloads):
        if index in cold:
            found.append(Step(size, cold[index]))
        size += reader.tokens(payload)
    return tuple(found)


def cost_of_times(session: Sequence[Step], times: Collection[int], terms: Terms) -> float:
    """What a session costs that is folded before these requests, by their numbers from 0."""
    total = 0.0
    size = before = 0
    for number, step in enumerate(session):
        appended = size + step.size - before
        folds = number in times
        size, kept = (min(terms.fold, appended), 0) if folds else (appended, size)
        total += _request(terms, size, kept, cold=step.cold or not number)
        before = step.size
    return total


def bound(session: Sequence[Step], terms: Terms) -> tuple[float, tuple[int, ...]]:
    """The least that fold times can cost, and which they are.

    After a fold, a request is as large as the fold and what was said since: what came before no
    longer matters. So the best way to a fold before request `i` is the best of those over the fold
    before it, and a session of n requests takes n² steps.
    """
    count = len(session)
    best = [0.0] + [float("inf")] * count
    last = [0] * (count + 1)
    folded = [False] * (count + 1)
    for first in range(count):
        # From the start there may also be no fold at all before the next one.
        for fold in (False, True) if first == 0 else (True,):
            total, size = best[first], 0
            for number in range(first, count):
                step = session[number]
                if number == first:
                    kept, size = 0, min(terms.fold, step.size) if fold else step.size
                else:
                    kept, size = size, size + step.size - session[number - 1].size
                total += _request(terms, size, kept, cold=step.cold or not number)
                if total < best[number + 1]:
                    best[number + 1], last[number + 1], folded[number + 1] = total, first, fold
    times: list[int] = []
    at = count
    while at:
        if folded[at]:
            times.append(last[at])
        at = last[at]
    return best[count], tuple(reversed(times))


def _request(terms: Terms, size: int, kept: int, *, cold: bool) -> float:
    """One request; `kept` are the tokens of messages that the one before had too."""
    read = 0 if cold else terms.fixed + kept
    return terms.read * read + terms.write * (terms.fixed + size - read)


def fold_times(replay: Replay, session: Sequence[Step]) -> tuple[int, ...]:
    """Before which requests a row rewrote what it had sent, and sent less."""
    times: list[int] = []
    for number, request in enumerate(replay.requests):
        before = replay.requests[number - 1].sent if number else 0
        grown = session[number].size - (session[number - 1].size if number else 0)
        rewritten = not request.cached or request.cached < _BROKEN * before
        if rewritten and request.sent < before + grown:
            times.append(number)
    return tuple(times)


def account(
    replay: Replay, session: Sequence[Step], best: float, missed: Sequence[Miss], terms: Terms
) -> Account:
    """The costs of a row; `best` is its session's bound."""
    sizes = {request.at: request.sent for request in replay.requests}
    own = 0.0
    for request in replay.requests:
        own += terms.read * request.cached + terms.write * request.new
        summary = request.own_usage
        plain = summary.input - summary.cache_read - summary.cache_write
        own += plain + terms.read * summary.cache_read + terms.write * summary.cache_write
        own += terms.output * summary.output
    rereads = sum(terms.read * sizes[miss.at] + terms.write * miss.tokens for miss in missed)
    timing = cost_of_times(session, fold_times(replay, session), terms)
    return Account(best, timing, own, rereads, len(missed))
