"""Artifacts: large bodies, by the hash of their content."""

from typing import Annotated, Final

from fastapi import APIRouter, Path, Response

from refold.service.api.asking import OfLog, Reader
from refold.service.api.route import Route

router = APIRouter(tags=["artifacts"], route_class=Route)
Hash = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the content.")]
INERT: Final = "default-src 'none'; sandbox"
"""Whatever it is, it runs nothing and fetches nothing."""


@router.get(
    "/artifacts/{hash}",
    summary="Read an artifact",
    response_class=Response,
    responses={
        200: {
            "description": "Its bytes, never to be shown as a page.",
            "content": {"application/octet-stream": {}, "text/plain": {}},
        }
    },
)
async def get_artifact(_: Reader, log: OfLog, hash: Hash) -> Response:  # noqa: A002 - the glossary's word
    """Only what an entry of the caller's own tenant refers to."""
    found = await log.artifact(hash)
    plain = found.media_type == "text/plain"
    kind = "text/plain; charset=utf-8" if plain else "application/octet-stream"
    headers = {
        "Content-Disposition": f'attachment; filename="{found.hash}{".txt" if plain else ".bin"}"',
        "Content-Security-Policy": INERT,
    }
    return Response(found.data, headers=headers, media_type=kind)
