"""Request records, read back from the log."""

from refold.errors import InvalidInput, Unrebuildable
from refold.log import CODEC, Entry, Log, Requested, Span
from refold.view import Plan, Previous, hashes_of, planned, rebuild


async def last_record(log: Log, session: str, seq: int | None) -> Previous | None:
    """The record at this seq with its plan, for the next request to go on from."""
    if seq is None:
        return None
    try:
        chain = await _chain(log, session, seq)
        plan = planned(chain, await _texts(log, chain))
    except Unrebuildable:  # then the next request begins anew
        return None
    return Previous(seq, chain[-1].chain, plan)


async def plan_of(log: Log, session: str, seq: int) -> Plan:
    """The plan of a past request."""
    chain = await _chain(log, session, seq)
    return planned(chain, await _texts(log, chain))


async def model_of(log: Log, session: str, seq: int) -> str:
    """The model that a past request was for."""
    return (await _record(log, session, seq)).model


async def rebuilt(log: Log, session: str, seq: int) -> tuple[bytes, ...]:
    """The messages of a past request, byte for byte, made again from the log.

    Raises Unrebuildable when something they were made of is gone.
    """
    chain = await _chain(log, session, seq)
    entries: list[Entry] = []
    for span in chain[-1].spans:
        entries += await log.read(session, span)
    return rebuild(chain, entries, await _texts(log, chain))


async def _chain(log: Log, session: str, seq: int) -> list[Requested]:
    """The record, after those it is a difference to."""
    last = await _record(log, session, seq)
    return [*[await _record(log, session, at) for at in last.chain], last]


async def _record(log: Log, session: str, seq: int) -> Requested:
    entries = await log.read(session, Span(seq, seq)) if seq > 0 else []
    for entry in entries:
        match CODEC.decode(entry):
            case Requested() as value:
                return value
            case _ if entry.forgotten and entry.kind == Requested.KIND:
                raise Unrebuildable("What was sent then has been forgotten.")
            case _:
                pass
    raise InvalidInput(f"Entry {seq} is no request record.", "`refold explain` lists them.")


async def _texts(log: Log, chain: list[Requested]) -> dict[str, str]:
    return {name: (await log.artifact(name)).data.decode() for name in hashes_of(chain)}
