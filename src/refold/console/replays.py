"""Replays that are under way in this process, and what came of them.

Each runs in a process of its own, with low priority, over entries that are read here: those of its
caller's tenant. Each person has one at a time, and its result until the next one, in memory.
"""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException

from refold.console.pages import what_if_url
from refold.errors import LimitReached
from refold.lab.background import Assignment, replayed
from refold.lab.findings import Findings
from refold.lab.report import CaseOptions
from refold.lab.tune import Values
from refold.log import CODEC, Entry, Log, Message, Opened, Requested, Rewound, Span
from refold.log.transfer import entry_line
from refold.models import ModelSettings
from refold.service.api.sessions import read_page
from refold.service.callers import Caller
from refold.service.problem import log_error, words_of
from refold.settings import SettingChange
from refold.view.profiles import Profile

MAX_SESSIONS: Final = 20
"""Sessions of one replay."""
MAX_MESSAGES: Final = 4_000
"""Messages of all sessions of one replay: some minutes."""
MAX_BYTES: Final = 48 << 20
"""Bytes of their entries."""
MAX_SECONDS: Final = 600.0
MAX_UNDER_WAY: Final = 2
"""Replays of all persons at once, in this process."""
_MAX_RUNS: Final = 50
_MAX_AGE: Final = 3_600.0
"""Seconds that a result is kept."""
_BATCH: Final = 500
_CACHE_SECONDS: Final = 300
OWN: Final = "own"
"""The settings that apply here."""
KINDS: Final = frozenset({Message.KIND, Opened.KIND, Requested.KIND, Rewound.KIND})
"""What the lab reads of a session."""


class Choice(NamedTuple):
    """What a person wants to know."""

    sessions: tuple[str, ...]
    base: str
    """The profile to begin with: its name, or `own`."""
    values: Values
    """What is changed in it, by the keys of settings."""
    others: bool
    """Whether the other profiles are compared, too."""

    @property
    def commands(self) -> list[str]:
        """What sets the same in a terminal."""
        base = [] if self.base == OWN else [f"refold config profile {self.base}"]
        return base + [f"refold config {key} {plain(x)}" for key, x in self.values.items()]

    @property
    def url(self) -> str:
        """The address that has the form with this choice."""
        more = "".join(f"&{key}={plain(value)}" for key, value in self.values.items())
        others = "&others=1" if self.others else ""
        return f"{what_if_url(*self.sessions)}&profile={self.base}{more}{others}"


class Failure(NamedTuple):
    """Why a replay has no result."""

    what: str
    fix: str


@dataclass(slots=True)
class Run:
    """A replay: how far it is, or what it has found."""

    name: str
    owner: tuple[str, str]
    choice: Choice
    began: float = field(default_factory=time.monotonic)
    done: int = 0
    of: int = 0
    findings: Findings | None = None
    error: Failure | None = None
    changes: list[SettingChange] = field(default_factory=list[SettingChange])
    """What was saved."""
    elsewhere: list[str] = field(default_factory=list[str])
    """Settings that still differ from what was replayed, and where they are set."""
    task: "asyncio.Task[None] | None" = None

    @property
    def under_way(self) -> bool:
        return self.findings is None and self.error is None

    def step(self, done: int, of: int) -> None:
        self.done, self.of = done, of


class Runs:
    """The replays of this process, one for each person."""

    def __init__(self) -> None:
        self._by_owner: dict[tuple[str, str], Run] = {}

    def of(self, caller: Caller) -> Run | None:
        self._drop_old()
        return self._by_owner.get(_owner(caller))

    def find(self, caller: Caller, name: str) -> Run:
        """The caller's own replay; any other is one that never was.

        Raises:
            HTTPException: There is none of that name.
        """
        run = self.of(caller)
        if run is None or not secrets.compare_digest(run.name, name):
            raise HTTPException(404, "That replay is not here.")
        return run

    def start(self, caller: Caller, choice: Choice, work: "Work") -> Run:
        """Begin a replay in place of the one before.

        Raises:
            LimitReached: Others have as many under way as this process does at once.
        """
        before = self.of(caller)
        if before is not None and before.under_way:
            return before
        if sum(run.under_way for run in self._by_owner.values()) >= MAX_UNDER_WAY:
            raise LimitReached(
                "As many replays are under way here as this service makes at once.",
                30,
                "Try again in a minute, or use `refold lab` on your own machine.",
            )
        run = Run(secrets.token_urlsafe(18), _owner(caller), choice)
        self._by_owner[run.owner] = run
        run.task = asyncio.create_task(_replay(run, work))
        return run

    async def cancel(self, run: Run) -> None:
        if run.task is not None and not run.task.done():
            run.task.cancel()
            await asyncio.wait({run.task})
        if run.under_way:
            run.error = Failure("The replay was canceled.", "Change something, and try again.")

    def _drop_old(self) -> None:
        now = time.monotonic()
        ended = [run for run in self._by_owner.values() if not run.under_way]
        old = [run for run in ended if now - run.began > _MAX_AGE]
        more = len(self._by_owner) - len(old) - _MAX_RUNS
        for run in [*old, *[each for each in ended if each not in old][: max(0, more)]]:
            del self._by_owner[run.owner]


class Work(NamedTuple):
    """What a replay needs of the service."""

    log: Log
    models: dict[str, ModelSettings]
    profiles: tuple[Profile, ...]


def _owner(caller: Caller) -> tuple[str, str]:
    return caller.tenant, caller.key


async def _replay(run: Run, work: Work) -> None:
    try:
        entries = await _entries_of(work.log, run.choice.sessions)
        options = CaseOptions(fixed=None, lifetime=_CACHE_SECONDS, models=work.models)
        assignment = Assignment(entries, work.profiles, options, MAX_MESSAGES)
        run.findings = await replayed(assignment, run.step, max_seconds=MAX_SECONDS)
    except Exception as error:  # noqa: BLE001 - the page says it; nobody else waits for the task
        log_error(error)
        _, what, fix = words_of(error)
        run.error = Failure(what, fix)


async def _entries_of(
    log: Log, sessions: Sequence[str]
) -> tuple[tuple[str, tuple[bytes, ...]], ...]:
    """The newest entries of each session that the lab reads, as lines of an export."""
    found: list[tuple[str, tuple[bytes, ...]]] = []
    left = MAX_BYTES
    for session in sessions:
        lines, left = await _lines_of(log, session, left)
        found.append((session, lines))
    return tuple(found)


async def _lines_of(log: Log, session: str, left: int) -> tuple[tuple[bytes, ...], int]:
    """The lines of the newest entries, and how many bytes the other sessions may have."""
    batches: list[list[bytes]] = []
    last, messages = await log.head(session), 0
    while last > 0 and messages < MAX_MESSAGES:
        after, size = max(0, last - _BATCH), 0
        lines: list[bytes] = []
        async for entry in _entries(log, session, after, last):
            messages += entry.kind == Message.KIND
            lines.append(await _line(log, session, entry))
            size += len(lines[-1])
            if size > left:
                break
        if size > left:  # only the newest entries, without a gap, can be replayed
            break
        batches.append(lines)
        last, left = after, left - size
    if last > 0 and batches:  # the format is in the first entry
        [opening] = await log.read(session, Span(1, 1))
        batches.append([await _line(log, session, opening)])
    return tuple(line for lines in reversed(batches) for line in lines), left


async def _entries(log: Log, session: str, after: int, last: int) -> AsyncIterator[Entry]:
    while after < last:
        batch = await read_page(
            *(log, session), after=after, limit=_BATCH, kinds=KINDS, whole=False, last=last
        )
        for entry in batch.entries:
            if not entry.forgotten:
                yield entry
        after = batch.next or last


async def _line(log: Log, session: str, entry: Entry) -> bytes:
    if entry.kind == Requested.KIND:
        # Of what was sent only the model matters, and the plan may be long.
        value = CODEC.decode(entry)
        model = value.model if isinstance(value, Requested) else ""
        entry = entry._replace(body=json.dumps({"model": model}).encode(), holes=())
    elif entry.holes:
        [entry] = await log.read(session, Span(entry.seq, entry.seq))
    return entry_line(entry).encode(errors="replace")


def plain(value: float) -> str:
    """A number as one types it."""
    return str(int(value)) if float(value).is_integer() else repr(value)
