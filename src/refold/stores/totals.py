"""Daily totals of what requests used and cost: what each append adds, and counting again.

A store keeps lines, one for each day, session, model and key, and for each session the state of its
accounts. An append that changes the accounts writes both in its own transaction, whatever the
length of the session. Where a state is missing (a store of an older version, a fork, a session of
which something was forgotten) the session is counted again from its log, later and outside of any
append.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from pydantic import JsonValue
from pydantic_core import from_json

from refold.errors import SessionForgotten, SessionNotFound
from refold.log.entry import Draft, Entry
from refold.log.kinds import Requested, Rewound, Used
from refold.log.protocol import Log
from refold.models.accounts import COUNTED, Accounts, entries_of
from refold.models.receipt import Receipt

_TAKEN: Final = COUNTED | {Requested.KIND}
_MAX_TRIES: Final = 5
_MAX_SENT: Final = 16
_END: Final = 1 << 32  # no entry has a higher number
_DAY: Final = 86_400_000  # milliseconds
_MAX_NAME: Final = 200
_NOTHING: Final = Receipt()


class Line(NamedTuple):
    """What a session's requests with one model and one key came to on one day."""

    day: int
    """Days since 1970, UTC."""
    model: str
    key: str
    receipt: Receipt


class Lines:
    """The lines of a session, as they grow with the entries that its accounts take in.

    What an entry changes counts on the day it was written, with the model and the key of the newest
    request: a summary counts with the conversation that it was made for. So the lines of a session
    add up to its receipt, however they are put together.
    """

    def __init__(self, accounts: Accounts) -> None:
        self._accounts, self._before = accounts, accounts.receipt
        self._found: dict[tuple[int, str, str], Receipt] = {}

    def add(self, entry: Entry) -> None:
        accounts = self._accounts
        accounts.add(entry)
        if entry.kind in COUNTED and (after := accounts.receipt) != self._before:
            name = entry.at // _DAY, _storable(accounts.model), _storable(accounts.key)
            more = after.less(self._before)
            self._found[name] = self._found.get(name, _NOTHING).plus(more)
            self._before = after

    @property
    def booking(self) -> "Booking":
        lines = [Line(*name, receipt) for name, receipt in self._found.items()]
        return Booking(self._accounts.dump(), lines)


def _storable(name: str) -> str:
    """A log may have been written by anybody."""
    return name[:_MAX_NAME].encode(errors="replace").decode().replace("\0", "")


class Booking(NamedTuple):
    """What an append writes besides its entries."""

    state: bytes | None
    """None: the session must be counted again."""
    lines: Sequence[Line] = ()


AGAIN: Final = Booking(None)
Basis = tuple[int, int, int]
"""A session's key, revision and head: what was counted is right as long as they are the same."""


def counted(entries: Sequence[Entry], drafts: Iterable[Draft]) -> list[Entry]:
    """Of the entries that are appended, those that change accounts, with their whole bodies."""
    if not any(entry.kind in COUNTED for entry in entries):
        return []
    bodies = {draft.id: draft.body for draft in drafts}
    return [
        entry._replace(body=bodies[entry.id], holes=()) for entry in entries if entry.kind in _TAKEN
    ]


def answered(entries: Iterable[Entry]) -> list[int]:
    """The request records that these entries answer and that are not among them."""
    found = list(entries)
    own = {entry.seq for entry in found}
    bodies = (_body(entry) for entry in found if entry.kind == Used.KIND)
    requests = (body.get("request") for body in bodies)
    return [seq for seq in requests if isinstance(seq, int) and 0 < seq < _END and seq not in own]


def _body(entry: Entry) -> dict[str, JsonValue]:
    try:
        body: JsonValue = from_json(entry.body)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def book(state: bytes, entries: Sequence[Entry], sent: Mapping[int, int]) -> Booking:
    """What new entries change.

    Args:
        state: The state of the session's accounts; empty: there was nothing to count so far.
        entries: Those that `counted` gives.
        sent: When the requests were sent that they answer, by their records.
    """
    accounts = Accounts.load(state) if state else Accounts()
    if accounts is None:
        return AGAIN
    if not accounts.can_rewind and any(entry.kind == Rewound.KIND for entry in entries):
        return AGAIN
    for request, at in sent.items():
        accounts.sent(request, at)
    lines = Lines(accounts)
    for entry in entries:
        lines.add(entry)
    return lines.booking


class KnownAccounts(NamedTuple):
    """How the accounts of a session stood when this process read or wrote them last."""

    key: int
    version: int
    """0: there was nothing to count so far."""
    state: bytes | None
    sent: Mapping[int, int]
    """When the newest requests were sent, by their records."""

    def booking(self, entries: Sequence[Entry]) -> Booking | None:
        """What new entries change; None if nothing."""
        if self.state is None:
            return AGAIN
        booking = book(self.state, entries, self.sent)
        return booking if booking.lines or booking.state != self.state else None

    def after(self, key: int, booking: Booking | None, entries: Iterable[Entry]) -> "KnownAccounts":
        """The accounts after an append of these entries."""
        new = {entry.seq: entry.at for entry in entries if entry.kind == Requested.KIND}
        sent = dict([*self.sent.items(), *new.items()][-_MAX_SENT:])
        if booking is None:
            return KnownAccounts(key, self.version, self.state, sent)
        return KnownAccounts(key, self.version + 1, booking.state, sent)


NEW: Final = KnownAccounts(0, 0, b"", {})
"""Those of a session that is begun."""


class Countable(Log, Protocol):
    """What counting again needs of a log."""

    async def uncounted(self, limit: int) -> list[str]:
        """Sessions that must be counted again, at most so many."""
        ...

    async def count_basis(self, session: str) -> Basis | None:
        """The basis of a count that begins now; None if the session is gone."""
        ...

    async def put_count(self, session: str, basis: Basis, booking: Booking) -> bool:
        """Put a count in the place of what the session had; False if the basis is another now."""
        ...


async def booking_from_log(log: Log, session: str, upto: int) -> Booking:
    """The accounts of a session at an entry, and the lines of its own entries up to it."""
    lines = Lines(Accounts(after=(await log.info(session)).own_from - 1))
    async for entry in entries_of(log, session, 1, upto):
        lines.add(entry)
    return lines.booking


async def count_again(log: Countable, limit: int) -> None:
    """Count sessions that must be; one that is written all the time waits for another call."""
    for session in await log.uncounted(limit):
        for _ in range(_MAX_TRIES):
            basis = await log.count_basis(session)
            if basis is None:
                break
            try:
                booking = await booking_from_log(log, session, basis[2])
            except (SessionForgotten, SessionNotFound):
                break
            if await log.put_count(session, basis, booking):
                break
