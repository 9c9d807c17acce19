"""How much a tenant may use in a day, over all processes.

Each process writes what its requests used to a journal of the day, every few seconds, and reads
there what the others wrote, of tenants that have a quota. So what several processes let through at
once may exceed a quota by what they used within those seconds; and a process that is killed has not
said its last of them.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import uuid4

from pydantic import JsonValue

from refold.errors import Conflict, QuotaUsedUp, RefoldError
from refold.log import Log, Note, Store
from refold.models.catalog import Usage
from refold.service.keys import TENANT, Journal, Keyring, Quota, Written
from refold.settings.serve import LimitSettings

EVERY: Final = 3.0
"""Seconds between two times that processes tell each other."""
_DAY: Final = 24 * 60 * 60
_DAYS: Final = 3
"""How many days are known here at once."""
_LOGGER: Final = logging.getLogger("refold.service")


class Used(NamedTuple):
    """What was used."""

    tokens: int = 0
    cost: float = 0.0
    """Dollars, as far as prices are known."""

    def and_also(self, other: "Used") -> "Used":
        """Both together."""
        return Used(self.tokens + other.tokens, self.cost + other.cost)


class _Day:
    """What is known of a day."""

    def __init__(self, number: int, journal: Journal) -> None:
        self.number = number
        self.journal = journal
        self.process = uuid4().hex
        """Another one each time that a day begins here: where a clock is set back to a day that is
        no longer known, what this process wrote of it then counts like another's."""
        self.ours: dict[str, Used] = {}
        self.untold: set[str] = set()
        self.others: dict[str, dict[str, Used]] = {}
        """By tenant and process: the newest that it said, which is all it used that day."""

    def take(self, note: Written) -> None:
        """Take in what a process said."""
        match note.data:
            case {"process": str(other), "used": dict(shares)} if other != self.process:
                for tenant, share in shares.items():
                    match share:
                        case [int(tokens), int() | float() as cost]:
                            self.others.setdefault(tenant, {})[other] = Used(tokens, float(cost))
                        case _:
                            pass
            case _:
                pass

    def used(self, tenant: str) -> Used:
        """What a tenant used, here and elsewhere."""
        total = self.ours.get(tenant, Used())
        for share in self.others.get(tenant, {}).values():
            total = total.and_also(share)
        return total


class Quotas:
    """Counts what tenants use in a day, and refuses those that have used up theirs."""

    def __init__(
        self,
        log: Log,
        quota_of: Callable[[str], Quota],
        *,
        every: float = EVERY,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Make them.

        Args:
            log: Of the service's own tenant.
            quota_of: A tenant's quota; a value that is 0 or None is no limit.
            every: Seconds between two times that processes tell each other.
            now: Seconds since 1970.
        """
        self._log = log
        self._quota_of = quota_of
        self._every = every
        self._now = now
        self._days: dict[int, _Day] = {}
        """Today, and days that the clock showed before: it may be set back to one of them."""
        self._today()
        self._telling: asyncio.Task[None] | None = None

    def used(self, tenant: str) -> Used:
        """What a tenant used today, as far as it is known here."""
        return self._today().used(tenant)

    def check(self, tenant: str) -> None:
        """Refuse a tenant that has used up its quota."""
        quota = self._quota_of(tenant)
        if not quota.tokens and not quota.cost:
            return
        used = self._today().used(tenant)
        if quota.tokens and used.tokens >= quota.tokens:
            raise QuotaUsedUp("The tenant has used up its tokens of the day.", self._left())
        if quota.cost and used.cost >= quota.cost:
            raise QuotaUsedUp("The tenant has used up its dollars of the day.", self._left())

    def add(self, tenant: str, used: Used) -> None:
        """Count what an answer used."""
        day = self._today()
        day.ours[tenant] = day.ours.get(tenant, Used()).and_also(used)
        day.untold.add(tenant)

    def spent(self, tenant: str, usage: Usage, cost: float | None) -> None:
        """Count what an answer or a summary used, and cost where that is known."""
        self.add(tenant, Used(usage.input + usage.output, cost or 0.0))

    async def open(self) -> None:
        """Read what was used today, and tell and read from now on."""
        await self.exchange()
        self._telling = asyncio.create_task(self._tell())

    async def close(self) -> None:
        """Say the last."""
        if self._telling is not None:
            self._telling.cancel()
            with suppress(asyncio.CancelledError):
                await self._telling
            with suppress(RefoldError):
                await self._write_all()

    async def exchange(self) -> None:
        """Write what was used here, read what was used elsewhere, and begin a day when it does."""
        today = self._today()
        await self._write_all()
        for number in sorted(self._days, key=lambda number: abs(number - today.number))[_DAYS:]:
            del self._days[number]
        for note in await today.journal.news():
            today.take(note)

    async def _write_all(self) -> None:
        for day in [*self._days.values()]:
            await self._write(day)

    async def _write(self, day: _Day) -> None:
        told = sorted(one for one in day.untold if any(self._quota_of(one)))
        if not told:
            return
        shares: dict[str, JsonValue] = {one: [*day.ours[one]] for one in told}
        data: dict[str, JsonValue] = {"process": day.process, "used": shares}
        with suppress(Conflict):  # then another process was first
            await day.journal.begin()
        day.untold.difference_update(told)
        try:
            await day.journal.add([Note("", data)], exactly=False)
        except BaseException:
            day.untold.update(told)
            raise

    async def _tell(self) -> None:
        failing = False
        while True:
            await asyncio.sleep(self._every)
            try:
                await self.exchange()
            except RefoldError as error:
                if not failing:  # one line for each outage of the store
                    _LOGGER.warning("What was used could not be told: %s", error.code)
                failing = True
            else:
                failing = False

    def _today(self) -> _Day:
        number = self._number()
        if number not in self._days:
            name = time.strftime("used %Y-%m-%d", time.gmtime(number * _DAY))
            self._days[number] = _Day(number, Journal(self._log, name))
        return self._days[number]

    def _number(self) -> int:
        return int(self._now() // _DAY)

    def _left(self) -> float:
        """Seconds until the next day."""
        return _DAY - self._now() % _DAY


def quotas_of(store: Store, keyring: Keyring, usual: LimitSettings) -> Quotas:
    """The quotas of a store's tenants: each one's own, else what the settings say for all."""

    def quota(tenant: str) -> Quota:
        own = keyring.quota(tenant)
        return Quota(
            usual.day_tokens if own.tokens is None else own.tokens,
            usual.day_cost if own.cost is None else own.cost,
        )

    return Quotas(store.log(TENANT), quota)
