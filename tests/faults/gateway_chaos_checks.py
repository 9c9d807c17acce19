"""What must hold after the gateways' chaos, whatever was killed when."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from uuid import UUID

import psycopg
from chaos_checks import objections_to_ends
from gateway_chaos_clients import Agent, Talk
from gateway_chaos_formats import Json
from gateway_chaos_upstream import UNKNOWN

from refold.engine import LocalEngine
from refold.engine.dbos.database import OWN_SCHEMA, SCHEMA
from refold.fold.compactor import from_the_log
from refold.gateway.dialects import DIALECTS, Dialect
from refold.log import CODEC, Entry, FoldCompleted, FoldFailed, Log, Message, Note
from refold.models.experience import Setup
from refold.models.making import makes
from refold.session import Session
from refold.view import PROFILES
from refold.wire import wire_for

_ROUNDED = 0.001  # an entry's time is told in whole milliseconds
_DIALECTS = {one.name: one for one in DIALECTS.values()}


async def names_of(log: Log) -> list[str]:
    """Every session, however many there are."""
    names: list[str] = []
    page = None
    while True:
        found = await log.sessions(limit=500, page=page)
        names += [one.session for one in found.sessions]
        page = found.next
        if page is None:
            return names


async def line_of(log: Log, session: str) -> list[bytes]:
    """The messages on a session's line, folded or not."""
    entries = await log.read(session)
    outline = (await log.outlined(session)).outline
    spans = outline.on_line(entries[-1].seq)
    values = [CODEC.decode(one) for one in entries if any(one.seq in span for span in spans)]
    return [one.payload for one in values if isinstance(one, Message)]


async def objections_to_line(log: Log, talk: Talk) -> str | None:
    """What the session of a conversation has otherwise than its client."""
    dialect = DIALECTS[talk.path]
    theirs = _contents(dialect, map(_bytes, talk.history))
    ours = _contents(dialect, await line_of(log, talk.session))
    if ours == theirs:
        return None
    first = next(
        (at for at, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]),
        min(len(ours), len(theirs)),
    )
    return (
        f"{talk.id} in {talk.session}: {len(theirs)} messages of the client's are {len(ours)} on "
        f"the line; from {first} on they differ: {talk.history[first : first + 1]}"
    )


def _bytes(message: Json) -> bytes:
    return json.dumps(message).encode()


def _contents(dialect: Dialect, payloads: Iterable[bytes]) -> list[bytes]:
    return [content for one in payloads if (content := dialect.fingerprint(one).content)]


class Logged:
    """All sessions, read whole."""

    def __init__(self):
        self.figures: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._seen: set[UUID] = set()
        self._answers: dict[bytes, list[float]] = defaultdict(list)

    def add(self, session: str, format: str, entries: Sequence[Entry]) -> None:  # noqa: A002
        """One session."""
        self.figures["sessions"] += 1
        seqs = [one.seq for one in entries]
        if seqs != list(range(1, len(seqs) + 1)):
            self.wrong.append(f"{session} has gaps")
        self.wrong += [f"{session}: {what}" for what in objections_to_ends(entries)]
        for entry in entries:
            if entry.id not in self._seen:  # forks share what is before them
                self._seen.add(entry.id)
                self._take(entry, _DIALECTS[format])

    def _take(self, entry: Entry, dialect: Dialect) -> None:
        match CODEC.decode(entry):
            case Message(payload) if dialect.fingerprint(payload).answers:
                self._answers[dialect.fingerprint(payload).content].append(entry.at / 1000)
            case FoldCompleted():
                self.figures["folds"] += 1
            case FoldFailed(_, reason):
                self.figures[f"fold failed: {reason.split(':')[0][:40]}"] += 1
            case Note(_, dict(data)) if "gateway" in data:
                self.figures[f"noted {data['gateway']}"] += 1
            case _:
                pass

    def objections_to_answers(self, talks: Iterable[Talk]) -> Iterator[str]:
        """Each message of an acknowledged answer is in the log once, since before its end was seen.

        What was lost would be there as well: the client says it when it goes on, but later. One
        that said that the store could not take it may be.
        """
        for talk in talks:
            dialect = DIALECTS[talk.path]
            for message, seen in talk.answers:
                payload = _bytes(message)
                content = dialect.fingerprint(payload).content
                times = self._answers[content] if content else [seen]
                if len(times) != 1:
                    yield f"{talk.id}: it is in the log {len(times)} times: {payload[:200]}"
                elif times[0] > seen + _ROUNDED:
                    late = times[0] - seen
                    yield f"{talk.id}: it was in the log {late:.3f} s too late: {payload[:200]}"


async def objections_to_next(log: Log, session: str, format: str) -> list[str]:  # noqa: A002
    """What a provider would not take of a session's next request, whoever makes it."""
    setup = Setup.of(UNKNOWN, PROFILES["balanced"])
    engine = LocalEngine(log, makes(log, from_the_log))
    opened = await Session.open(log, session, setup, format=None, engine=engine)
    try:
        prompt = {"role": "user", "content": "How does it stand?"}
        await opened.say(json.dumps(prompt).encode())
        request = await opened.request()
        problems = wire_for(format).problems(request.messages)
    finally:
        await opened.close()
        await engine.close()
    return [f"{session}, next request: {one}" for one in problems]


def sockets_of(pid: int) -> int:
    """How many sockets a process has open."""
    links = Path(f"/proc/{pid}/fd").iterdir()
    return sum(one.readlink().as_posix().startswith("socket:") for one in links)


async def stuck(log: Log, name: str, owner: str, agents: Iterable[Agent]) -> dict[str, object]:
    """Whose session it is, what was done since the fold began, and what the engine knows of it."""
    info, outlined = await log.info(name), await log.outlined(name)
    talk = next((t.id for one in agents for t in one.talks if t.session == name), None)
    first = outlined.outline.running[0].seq
    since = Counter(one.kind for one in await log.read(name) if one.seq >= first)
    with psycopg.connect(owner) as db:
        rows = db.execute(
            f"SELECT status, worker, queue FROM {OWN_SCHEMA}.folds"  # noqa: S608 - our own names
            f" LEFT JOIN {SCHEMA}.workflow_status ON workflow_uuid = id WHERE fold = %s",
            (outlined.outline.running[0].fold,),
        ).fetchall()
    return {
        "session": name,
        "conversation": talk,
        "forked": (info.forked_from, info.forked_at),
        "fold began at": first,
        "since": dict(since),
        "workflows": rows,
    }
