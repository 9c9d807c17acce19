"""A session as one JSON object."""

import json
from collections.abc import AsyncIterator
from dataclasses import asdict

from refold.exports.moments import (
    Compacted,
    MessageMoment,
    Opens,
    RemovedSpan,
    day_and_time,
    moments,
)
from refold.log import Log, SessionInfo

VERSION = 1


async def json_object(log: Log, session: str) -> AsyncIterator[str]:
    """The object: the session, its messages in their own format, its folds, and totals.

    The messages are those of the log, byte for byte.
    """
    info = await log.info(session)
    yield f'{{"export": {VERSION}, "session": {_dumped(session_json(info))},\n"messages": ['
    folds: list[Compacted] = []
    messages = calls = chars = 0
    async for moment in moments(log, session):
        match moment:
            case Opens(Compacted() as fold) | (Compacted() as fold):
                folds.append(fold)
            case MessageMoment(body=body, shapes=shapes) if body:
                place = {"seq": moment.seq, "at": day_and_time(moment.at), "scope": moment.scope}
                message = f'{_dumped(place)[:-1]}, "message": {body.decode()}}}'
                yield f"{',' if messages else ''}\n{message}"
                messages += 1
                calls += sum(shape.kind == "call" for shape in shapes)
                chars += sum(len(shape.text) for shape in shapes)
            case _:
                pass
    standing = [fold for fold in folds if fold.stands]
    totals = {
        "messages": messages,
        "calls": calls,
        "characters": chars,
        "folds": len(standing),
        "tokens_removed": _removed(standing),
    }
    folds.sort(key=lambda fold: fold.seq)
    listed = ",\n".join(_dumped(fold_json(fold)) for fold in folds)
    yield f'\n],\n"folds": [\n{listed}\n],\n"totals": {_dumped(totals)}}}\n'


def session_json(info: SessionInfo) -> dict[str, object]:
    fields = asdict(info)
    del fields["own_from"]  # counts with `forked_at`, and means nothing to anybody else
    times = {name: day_and_time(fields[name]) for name in ("created_at", "updated_at")}
    return {"name": fields.pop("session"), **fields, **times}


def fold_json(fold: Compacted) -> dict[str, object]:
    return {
        "seq": fold.seq,
        "at": day_and_time(fold.at),
        "stands": fold.stands,
        "spans": [[span.first, span.last] for span in fold.spans],
        "messages_removed": fold.messages,
        "tokens_removed": fold.removed,
        "tokens_before": fold.tokens,
        "tokens_after": fold.shown,
        "by": fold.by,
        "title": fold.title,
        "summary": fold.text,
    }


def removed_span_json(removed: RemovedSpan) -> dict[str, object]:
    return {"how": removed.how.lower(), "span": [removed.first, removed.last]}


def _removed(standing: list[Compacted]) -> int:
    """The tokens that requests save: of nested folds, only the outermost counts."""
    inner = {
        fold.seq
        for fold in standing
        for other in standing
        if other.seq > fold.seq and _covers(other, fold)
    }
    return sum(fold.removed for fold in standing if fold.seq not in inner)


def _covers(outer: Compacted, inner: Compacted) -> bool:
    return all(
        any(wide.first <= span.first and span.last <= wide.last for wide in outer.spans)
        for span in inner.spans
    )


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
