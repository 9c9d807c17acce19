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
from refold.models.spending import Usage
from refold.service.journal import TENANT, Journal, Written
from refold.service.kept import Quota
from refold.service.keyring import Keyring
from refold.settings.serve import LimitSettings

EVERY: Final = 3.0
"""Seconds between two times that processes tell each other."""
_DAY: Final = 24 * 60 * 60
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
        self.ours: dict[str, Used] = {}
        self.untold: set[str] = set()
        self.others: dict[str, dict[str, Used]] = {}
        """By tenant and process: the newest that it said, which is all it used that day."""

    def take(self, note: Written, process: str) -> None:
        """Take in what a process said."""
        match note.data:
            case {"process": str(other), "used": dict(shares)} if other != process:
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
        self._process = uuid4().hex
        self._day = self._begun()
        self._telling: asyncio.Task[None] | None = None

    def used(self, tenant: str) -> Used:
        """What a tenant used today, as far as it is known here."""
        return self._day.used(tenant)

    def check(self, tenant: str) -> None:
        """Refuse a tenant that has used up its quota."""
        quota = self._quota_of(tenant)
        if not quota.tokens and not quota.cost:
            return
        used = self._day.used(tenant) if self._number() == self._day.number else Used()
        if quota.tokens and used.tokens >= quota.tokens:
            raise QuotaUsedUp("The tenant has used up its tokens of the day.", self._left())
        if quota.cost and used.cost >= quota.cost:
            raise QuotaUsedUp("The tenant has used up its dollars of the day.", self._left())

    def add(self, tenant: str, used: Used) -> None:
        """Count what an answer used."""
        day = self._day
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
                await self.exchange()

    async def exchange(self) -> None:
        """Write what was used here, read what was used elsewhere, and begin a day when it does."""
        day = self._day
        if self._number() != day.number:
            self._day = self._begun()
        await self._write(day)
        for note in await self._day.journal.news():
            self._day.take(note, self._process)

    async def _write(self, day: _Day) -> None:
        told = sorted(one for one in day.untold if any(self._quota_of(one)))
        if not told:
            return
        shares: dict[str, JsonValue] = {one: [*day.ours[one]] for one in told}
        data: dict[str, JsonValue] = {"process": self._process, "used": shares}
        with suppress(Conflict):  # then another process was first
            await day.journal.begin()
        day.untold.difference_update(told)
        try:
            await day.journal.add([Note("", data)], exactly=False)
        except BaseException:
            day.untold.update(told)
            raise

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self.exchange()
            except RefoldError as error:
                _LOGGER.warning("What was used could not be told: %s", error.code)

    def _begun(self) -> _Day:
        number = self._number()
        name = time.strftime("used %Y-%m-%d", time.gmtime(number * _DAY))
        return _Day(number, Journal(self._log, name))

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
