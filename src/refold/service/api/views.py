"""Requests: which there were, what each sent, and why."""

from fastapi import APIRouter, Response

from refold.errors import InvalidInput
from refold.log import CODEC, Entry, Forgotten, Requested, Span
from refold.recall.records import rebuilt
from refold.service.api import view_answers as answers
from refold.service.api.answers import moment
from refold.service.api.asking import OfLog, Reader, SessionName
from refold.service.api.given import After, Limit, Seq
from refold.service.api.reading import listed, read_page, with_raw
from refold.service.api.route import Route
from refold.session.explaining import explained_at

router = APIRouter(tags=["requests"], route_class=Route)


@router.get("/sessions/{session}/requests", summary="List the requests that were sent")
async def list_requests(
    _: Reader, log: OfLog, session: SessionName, after: After = 0, limit: Limit = 100
) -> answers.RequestPage:
    """Each is a record from which what was sent can be made again."""
    kinds = (Requested.KIND,)
    page = await read_page(log, session, after=after, limit=limit, kinds=kinds)
    records = [_record(one) for one in page.entries]
    return answers.RequestPage(requests=records, head=page.head, next=page.next)


@router.get(
    "/sessions/{session}/requests/{seq}",
    summary="See what a request sent, and why",
    response_model=answers.RequestView,
)
async def get_request(_: Reader, log: OfLog, session: SessionName, seq: Seq) -> Response:
    """The messages as they were sent, and what became of each part of the session, with reasons.

    The number is what the gateway's header `Refold-Request` has behind the colon.
    """
    entries = await log.read(session, Span(seq, seq), whole=True)
    if not entries or entries[0].kind != Requested.KIND:
        raise InvalidInput(
            f"Entry {seq} is no request record.",
            "GET /api/v1/sessions/{session}/requests lists them.",
        )
    messages = await rebuilt(log, session, seq)
    told = (await explained_at(log, session, seq)).as_json()
    about = _record(entries[0]).model_dump(mode="json")
    about["explanation"] = answers.Explanation.model_validate(told).model_dump(mode="json")
    body = with_raw(about, "messages", listed(messages))
    return Response(body, media_type="application/json")


def _record(entry: Entry) -> answers.RequestRecord:
    match CODEC.decode(entry):
        case Requested(model=model, plan=dict() as plan, digest=digest, limit=limit):
            tokens, profile = plan.get("tokens"), plan.get("profile")
            return answers.RequestRecord(
                seq=entry.seq,
                at=moment(entry.at),
                model=model,
                state="rebuildable",
                profile=profile if isinstance(profile, str) else None,
                tokens=tokens if isinstance(tokens, int) else None,
                limit=limit,
                digest=digest,
            )
        case Forgotten(kept=kept):
            limit = kept.get("limit")
            return answers.RequestRecord(
                seq=entry.seq,
                at=moment(entry.at),
                model=str(kept.get("model", "")),
                state="unrebuildable",
                limit=limit if isinstance(limit, int) else None,
                digest=str(kept.get("digest", "")),
            )
        case _:
            return answers.RequestRecord(
                seq=entry.seq, at=moment(entry.at), model="", state="unrebuildable", digest=""
            )
