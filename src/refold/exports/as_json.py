"""A session as one JSON object."""

import json
from collections.abc import AsyncIterator
from dataclasses import asdict

from refold.exports.moments import Aside, Compacted, Opens, Said, day_and_time, moments
from refold.log import Log, SessionInfo

VERSION = 1


async def json_object(log: Log, session: str) -> AsyncIterator[str]:
    """The object: the session, its messages in their own format, its folds, and what they come to.

    The messages are spelled as they are in the log, byte for byte.
    """
    info = await log.info(session)
    yield f'{{"export": {VERSION}, "session": {_dumped(session_json(info))},\n"messages": ['
    folds: list[Compacted] = []
    messages = calls = chars = 0
    async for one in moments(log, session):
        match one:
            case Opens(Compacted() as fold):
                folds.append(fold)
            case Compacted() as fold:
                folds.append(fold)
            case Said(body=body) if body:
                yield f"{',' if messages else ''}\n{_message(one)}"
                messages += 1
                calls += sum(shape.kind == "call" for shape in one.shapes)
                chars += sum(len(shape.text) for shape in one.shapes)
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
    told = ",\n".join(_dumped(fold_json(fold)) for fold in sorted(folds, key=lambda one: one.seq))
    yield f'\n],\n"folds": [\n{told}\n],\n"totals": {_dumped(totals)}}}\n'


def session_json(info: SessionInfo) -> dict[str, object]:
    """What a list of sessions says of one, with its times as ISO 8601 has them."""
    told = asdict(info)
    told["name"] = told.pop("session")
    for name in ("created_at", "updated_at"):
        told[name] = day_and_time(told[name])
    return {"name": told.pop("name"), **told}


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


def aside_json(aside: Aside) -> dict[str, object]:
    """What was rewound or cleared, as data."""
    return {"how": aside.how.lower(), "span": [aside.first, aside.last]}


def _removed(standing: list[Compacted]) -> int:
    """What requests have fewer: of folds in one another, only the outermost counts."""
    inner = {
        one.seq
        for one in standing
        for other in standing
        if other.seq > one.seq and _covers(other, one)
    }
    return sum(one.removed for one in standing if one.seq not in inner)


def _covers(outer: Compacted, inner: Compacted) -> bool:
    return all(
        any(wide.first <= span.first and span.last <= wide.last for wide in outer.spans)
        for span in inner.spans
    )


def _message(said: Said) -> str:
    place = {"seq": said.seq, "at": day_and_time(said.at), "scope": said.scope}
    return f'{_dumped(place)[:-1]}, "message": {said.body.decode()}}}'


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
