"""How much a tenant may use in a day, over all processes.

Every few seconds, each process writes what its requests used to a journal of the day, for tenants
that have a quota, and reads what the others wrote. So several processes together may exceed a quota
by what they use within those seconds, and a killed process leaves its last seconds uncounted.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import uuid4

from pydantic import JsonValue

from refold.errors import Conflict, QuotaUsedUp, RefoldError
from refold.fold.compactor import Write
from refold.fold.job import Job, Steps
from refold.fold.material import Material
from refold.fold.summary import Summary
from refold.log import Log, Note, Store
from refold.models.catalog import Overrides, Usage, cost_of, facts_of
from refold.service.keys import TENANT, Journal, JournalNote, Keyring, Quota
from refold.settings.serve import LimitSettings

EVERY: Final = 3.0
"""Seconds between two exchanges with the other processes."""
_DAY: Final = 24 * 60 * 60
_DAYS: Final = 3
"""How many days are kept in memory."""
_LOGGER: Final = logging.getLogger("refold.service")


class Used(NamedTuple):
    tokens: int = 0
    cost: float = 0.0
    """Dollars, as far as prices are known."""

    def plus(self, other: "Used") -> "Used":
        return Used(self.tokens + other.tokens, self.cost + other.cost)


class _Day:
    def __init__(self, number: int, journal: Journal) -> None:
        self.number = number
        self.journal = journal
        self.process = uuid4().hex
        """A new id for each day: if the clock is set back to a day that was dropped from memory,
        what this process wrote about it earlier counts like another process's."""
        self.ours: dict[str, Used] = {}
        self.unwritten: set[str] = set()
        """Tenants whose share must be written."""
        self.others: dict[str, dict[str, Used]] = {}
        """By tenant and process: its newest total of that day."""

    def take(self, note: JournalNote) -> None:
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
        total = self.ours.get(tenant, Used())
        for share in self.others.get(tenant, {}).values():
            total = total.plus(share)
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
        """Count into a log.

        Args:
            log: The log of the service's own tenant.
            quota_of: A tenant's quota; 0 or None means no limit.
            every: Seconds between two exchanges with the other processes.
            now: Seconds since 1970.
        """
        self._log = log
        self._quota_of = quota_of
        self._every = every
        self._now = now
        self._days: dict[int, _Day] = {}
        """Today, and earlier days: the clock may be set back to one of them."""
        self._today()
        self._exchanging: asyncio.Task[None] | None = None

    def used(self, tenant: str) -> Used:
        """What a tenant used today, as far as this process knows."""
        return self._today().used(tenant)

    def quota(self, tenant: str) -> Quota:
        """The tenant's own quota, or else the settings' default; 0 or None means no limit."""
        return self._quota_of(tenant)

    def check(self, tenant: str) -> None:
        quota = self._quota_of(tenant)
        if not quota.tokens and not quota.cost:
            return
        used = self._today().used(tenant)
        if quota.tokens and used.tokens >= quota.tokens:
            raise QuotaUsedUp("The tenant has used up its tokens of the day.", self._seconds_left())
        if quota.cost and used.cost >= quota.cost:
            raise QuotaUsedUp(
                "The tenant has used up its dollars of the day.", self._seconds_left()
            )

    def add(self, tenant: str, used: Used) -> None:
        day = self._today()
        day.ours[tenant] = day.ours.get(tenant, Used()).plus(used)
        day.unwritten.add(tenant)

    def spent(self, tenant: str, usage: Usage, cost: float | None) -> None:
        """Count what an answer or a summary used, and its cost if known."""
        self.add(tenant, Used(usage.input + usage.output, cost or 0.0))

    async def open(self) -> None:
        await self.exchange()
        self._exchanging = asyncio.create_task(self._keep_exchanging())

    async def close(self) -> None:
        if self._exchanging is not None:
            self._exchanging.cancel()
            with suppress(asyncio.CancelledError):
                await self._exchanging
            with suppress(RefoldError):
                await self._write_all()

    async def exchange(self) -> None:
        """Write what was used here, and read what was used elsewhere."""
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
        tenants = sorted(tenant for tenant in day.unwritten if any(self._quota_of(tenant)))
        if not tenants:
            return
        shares: dict[str, JsonValue] = {tenant: [*day.ours[tenant]] for tenant in tenants}
        data: dict[str, JsonValue] = {"process": day.process, "used": shares}
        with suppress(Conflict):  # then another process was first
            await day.journal.begin()
        day.unwritten.difference_update(tenants)
        try:
            await day.journal.add([Note("", data)], exactly=False)
        except BaseException:
            day.unwritten.update(tenants)
            raise

    async def _keep_exchanging(self) -> None:
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
        number = int(self._now() // _DAY)
        if number not in self._days:
            name = time.strftime("used %Y-%m-%d", time.gmtime(number * _DAY))
            self._days[number] = _Day(number, Journal(self._log, name))
        return self._days[number]

    def _seconds_left(self) -> float:
        return _DAY - self._now() % _DAY


def quotas_of(store: Store, keyring: Keyring, default: LimitSettings) -> Quotas:
    """The quotas of a store's tenants: each tenant's own, else the settings' default."""

    def quota(tenant: str) -> Quota:
        own = keyring.quota(tenant)
        return Quota(
            default.day_tokens if own.tokens is None else own.tokens,
            default.day_cost if own.cost is None else own.cost,
        )

    return Quotas(store.log(TENANT), quota)


def _allow(_tenant: str) -> None:
    pass


def _ignore(_tenant: str, _usage: Usage, _cost: float | None) -> None:
    pass


async def _up_to_date() -> None:
    pass


class Spending(NamedTuple):
    """What summaries cost a tenant: as much as if it had asked for them itself."""

    check: Callable[[str], None]
    """Refuses a tenant whose quota is used up; then its summaries are extractive."""
    add: Callable[[str, Usage, float | None], None]
    """Counts what a tenant's summary used, and its cost if known."""
    refresh: Callable[[], Awaitable[None]] = _up_to_date
    """Reads keys and quotas that other processes have changed."""


FREE: Final = Spending(_allow, _ignore)
"""Refuses nobody and counts nothing."""


def metered(write: Write, tenant: str, models: Overrides, spending: Spending) -> Write:
    """Writes a tenant's summaries, and counts what they used."""

    async def write_metered(material: Material, job: Job, steps: Steps) -> Summary:
        await spending.refresh()
        summary = await write(material, job, steps)
        if counts := summary.usage:
            usage = Usage(*(counts.get(name, 0) for name in ("input", "output", "cache_read")))
            spending.add(tenant, usage, cost_of(usage, facts_of(summary.by, models).prices))
        return summary

    return write_metered
