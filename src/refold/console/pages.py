"""Templates and what they need: times, numbers, and words of a log as a page may show them."""

import gzip
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from refold.console.access import HOME, Access, check_form, form_token
from refold.errors import KeyNeeded, SessionForgotten, SessionNotFound
from refold.gateway.outcome import Outcome
from refold.log import DEFAULT_TENANT
from refold.service.api.routing import Route
from refold.service.callers import Caller
from refold.service.problem import log_error, note_failure, status_of, words_of
from refold.transcripts.programs import PROGRAMS
from refold.view.explanation import sentence
from refold.view.timeline import SYMBOLS

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: browsers would then hide the origin of our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""Of every answer of the console."""
SIGN_IN: Final = f"{HOME}/sign-in"
SEE_OTHER: Final = 303
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOREVER: Final = "public, max-age=31536000, immutable"
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Controls, and what changes the direction of writing or cannot be seen: each is shown by name."""
_SESSION_FIX: Final = "The list of sessions shows those that there are."
_LINE: Final = 160
_MAX_FORM: Final = 8_192  # bytes
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


class Asset(NamedTuple):
    """A script or style sheet, also compressed."""

    data: bytes
    packed: bytes
    kind: str
    version: str


@cache
def asset(name: str) -> Asset | None:
    """One of our own files; there are no others."""
    folder = files("refold.console").joinpath("assets")
    known = {each.name for each in folder.iterdir() if each.name.endswith((*_TYPES,))}
    if name not in known:
        return None
    data = folder.joinpath(name).read_bytes()
    kind = _TYPES[name[name.rindex(".") :]]
    return Asset(data, gzip.compress(data, 9, mtime=0), kind, sha256(data).hexdigest()[:16])


def asset_url(name: str) -> str:
    """Its address; another one whenever the file changes, so that browsers may keep it."""
    found = asset(name)
    return f"{HOME}/assets/{name}?v={found.version if found else ''}"


def asset_response(request: Request, name: str) -> Response | None:
    found = asset(name)
    if found is None:
        return None
    headers = {"Vary": "Accept-Encoding", "X-Content-Type-Options": "nosniff"}
    if request.query_params.get("v") == found.version:
        headers["Cache-Control"] = _FOREVER
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(found.packed, headers=headers, media_type=found.kind)
    return Response(found.data, headers=headers, media_type=found.kind)


def visible(text: str) -> str:
    """Words of a log with nothing that hides or turns what is around it.

    A page obeys no escape sequence, but a reader must see that one is there.
    """
    return _INVISIBLE.sub(_named, text) if _INVISIBLE.search(text) else text


def escaped_json(text: str) -> str:
    """JSON in which whatever cannot be seen is an escape: what is copied has the same values."""
    return _INVISIBLE.sub(_escaped, text) if _INVISIBLE.search(text) else text


def _escaped(match: re.Match[str]) -> str:
    # The other controls of JSON are line ends between values.
    return json.dumps(match[0])[1:-1] if ord(match[0]) > 0x20 else ""  # noqa: PLR2004 - a space


def _named(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:  # noqa: PLR2004 - the controls that have pictures
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"[U+{code:04X}]"  # noqa: PLR2004 - delete


def session_url(session: str, rest: str = "") -> str:
    """The address of a session, or of something in it; a slash in its name is written %2F."""
    return f"{HOME}/sessions/{quote(session, safe='')}{rest}"


def digest(text: str) -> str:
    """The same for the same text, and fit to be the id of an element."""
    return sha256(text.encode(errors="replace")).hexdigest()[:16]


def what_if_url(*sessions: str) -> str:
    """The address that replays these sessions under other settings."""
    query = urlencode([("session", each) for each in sessions], quote_via=quote, safe="")
    return f"{HOME}/what-if?{query}"


def program_name(program: str) -> str:
    """What people call the program that recorded a session."""
    known = PROGRAMS.get(program)
    return known.name if known else one_line(program)


def dollars(amount: float | None) -> str:
    if amount is None:
        return "—"
    sign = "−" if amount < 0 else ""  # noqa: RUF001 - a minus
    if 0 < abs(amount) < 0.00005:  # noqa: PLR2004 - four digits would be zeros
        return "under $0.0001"
    if 0 < abs(amount) < 0.01:  # noqa: PLR2004 - a cent
        return f"{sign}${abs(amount):.4f}"
    return f"{sign}${abs(amount):,.2f}"


def number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def signed(value: int) -> str:
    return f"{value:+,}".replace("-", "−")  # noqa: RUF001 - a minus


def short(number: int) -> str:
    """A number as it fits in a column: 950, 12.3k, 4.5M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}".removesuffix(".0") + letter
    return str(number)


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def exact(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def clock(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def one_line(text: str) -> str:
    """The beginning of a text, as one line."""
    return visible(" ".join(text[:_LINE].split())) + ("…" if len(text) > _LINE else "")


def ago(moment: datetime) -> str:
    """How long ago, in one word or two; a date where that says more."""
    seconds = max(0.0, time.time() - moment.timestamp())
    for size, limit, unit in ((1, _MINUTE, "s"), (_MINUTE, _HOUR, "min"), (_HOUR, _DAY, "h")):
        if seconds < limit:
            return f"{int(seconds // size)} {unit} ago"
    days = int(seconds // _DAY)
    return f"{days} d ago" if days < 14 else moment.strftime("%Y-%m-%d")  # noqa: PLR2004 - two weeks


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("refold.console"),
        autoescape=True,  # also where a file's name does not end in html
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "ago": ago,
        "clock": clock,
        "digest": digest,
        "dollars": dollars,
        "exact": exact,
        "iso": iso,
        "number": number,
        "one_line": one_line,
        "program": program_name,
        "reason": sentence,
        "short": short,
        "signed": signed,
        "visible": visible,
    }
    names: dict[str, Any] = {
        "asset": asset_url,
        "home": HOME,
        "session_url": session_url,
        "symbols": {**SYMBOLS, "new": "·"},
        "what_if_url": what_if_url,
    }
    environment.filters.update(filters)  # pyright: ignore[reportUnknownMemberType] - of its values
    environment.globals.update(names)  # pyright: ignore[reportUnknownMemberType] - of its values
    return environment


def access_of(request: Request) -> Access:
    access: Access = request.app.state.console
    return access


async def fields_of(
    request: Request, *, limit: int = _MAX_FORM, ours: bool = True
) -> dict[str, str]:
    """The fields of a form; with `ours`, of one that a page of this browser's session holds.

    Raises:
        HTTPException: It is larger than `limit` bytes.
        NotLocal: It is not a form of this session.
    """
    found = await values_of(request, limit=limit, ours=ours)
    return {name: values[0] for name, values in found.items()}


async def values_of(
    request: Request, *, limit: int = _MAX_FORM, max_fields: int = 20, ours: bool = True
) -> dict[str, list[str]]:
    """All values of each field of a form; the rest is as in `fields_of`."""
    body = await request.body()
    if len(body) > limit:
        raise HTTPException(413)
    try:
        found = parse_qs(body.decode("ascii", errors="replace"), max_num_fields=max_fields)
    except ValueError as error:  # more fields than any form of ours has
        raise HTTPException(413) from error
    if ours:
        check_form(request, found.get("form_token", [""])[0])
    return found


def render(template: str, **context: object) -> str:
    return _environment().get_template(template).render(context)


def page(request: Request, template: str, status: int = 200, **context: object) -> Response:
    """A page or a part of one, for who is signed in."""
    caller: Caller | None = getattr(request.state, "caller", None)
    html = (
        _environment()
        .get_template(template)
        .render(
            caller=caller,
            tenant=caller.tenant if caller and caller.tenant != DEFAULT_TENANT else "",
            form_token=form_token(request) if caller else "",
            **context,
        )
    )
    # A log may hold halves of characters, which no page can.
    return HTMLResponse(html.encode(errors="replace"), status, dict(HEADERS))


def error_page(request: Request, error: Exception) -> Response:
    """What went wrong, and what to do; a part of a page gets a part."""
    log_error(error)
    note_failure(Outcome.of(request.scope), error)
    status = status_of(error)
    _, what, fix = words_of(error)
    if isinstance(error, SessionNotFound | SessionForgotten):
        fix = _SESSION_FIX
    elif "/api/" in fix:
        fix = "Go back to the list of sessions."
    template = "problem_part.html" if is_part(request) else "problem.html"
    return page(request, template, status, code=status, what=what, fix=fix)


def is_part(request: Request) -> bool:
    """Whether a script asks, and puts the answer into its page."""
    return request.headers.get("hx-request") == "true"


class Page(Route):
    """A route whose caller is who signed in with the browser, and whose errors are pages."""

    headers = HEADERS

    def get_route_handler(self) -> Callable[[Request], Any]:
        """Like the API's, but a bug is a page, too."""
        handle: Callable[[Request], Awaitable[Response]] = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                return await handle(request)
            except Exception as error:  # noqa: BLE001 - it is logged
                return error_page(request, error)

        return handler

    async def authenticate(self, request: Request) -> Caller:
        """Who signed in with this browser."""
        return await access_of(request).caller_of(request)

    def refuse(self, request: Request, error: Exception) -> Response:
        """A page that says what to do; who has not signed in is led to where that is done."""
        if not isinstance(error, KeyNeeded):
            return error_page(request, error)
        here = request.scope["raw_path"].decode("latin-1")
        query = request.scope["query_string"].decode("latin-1")
        where = f"{SIGN_IN}?next={quote(f'{here}?{query}' if query else here, safe='')}"
        if is_part(request):
            return Response(headers={"HX-Redirect": where})
        return RedirectResponse(where, SEE_OTHER)
