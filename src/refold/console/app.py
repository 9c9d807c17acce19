"""The room itself: its routes, and how browsers get in and out."""

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.routing import Route

from refold.console import difference, folds, money, requests, sessions, timeline, what_if, window
from refold.console.access import HOME, Access, forget_cookie, set_cookie
from refold.console.pages import (
    HEADERS,
    SEE_OTHER,
    SIGN_IN,
    access_of,
    asset_response,
    error_page,
    fields_of,
    page,
)
from refold.errors import RefoldError

OPEN: Final = f"{HOME}/open"
_MAX_NEXT: Final = 2_000
_UNAUTHORIZED: Final = 401

_Handler = Callable[[Request], Awaitable[Response]]


def add_console(app: FastAPI, access: Access) -> None:
    """Let an application of the service show the console, to whom `access` lets in."""
    app.state.console, app.state.totals = access, sessions.Totals()
    app.state.what_if = what_if.Runs()
    plain: tuple[tuple[str, _Handler, str], ...] = (
        (f"{HOME}/assets/{{name}}", _asset, "GET"),
        (f"{HOME}/", _home, "GET"),
        (OPEN, _open, "GET"),
        (SIGN_IN, _sign_in_page, "GET"),
        (SIGN_IN, _sign_in, "POST"),
        (f"{HOME}/sign-out", _sign_out, "POST"),
    )
    app.router.routes += [
        Route(path, _checked(handler), methods=[method]) for path, handler, method in plain
    ]
    for room in (sessions, money, folds, timeline, window, difference, requests, what_if):
        app.include_router(room.router, prefix=HOME, include_in_schema=False)
    app.router.routes.append(Route(f"{HOME}/{{rest:path}}", _checked(_nothing)))


def open_address(where: str, token: str, then: str = HOME) -> str:
    """The address that opens the console at a page of it, once."""
    query = {"token": token} if then == HOME else {"token": token, "next": then}
    return f"{where}{OPEN}?{urlencode(query)}"


def _checked(handler: _Handler) -> _Handler:
    """Whoever calls it: not from another site, and what goes wrong is a page."""

    async def checked(request: Request) -> Response:
        try:
            access_of(request).check(request)
            response = await handler(request)
        except (RefoldError, HTTPException) as error:
            response = error_page(request, error)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return checked


async def _asset(request: Request) -> Response:
    response = asset_response(request, request.path_params["name"])
    if response is None:
        raise HTTPException(404)
    return response


async def _home(_: Request) -> Response:
    return RedirectResponse(HOME)


async def _nothing(_: Request) -> Response:
    raise HTTPException(404)


async def _open(request: Request) -> Response:
    """Sign in with the token that the address carries, and lose it from the address."""
    access = access_of(request)
    session = access.exchange(request.query_params.get("token", ""))
    where = _inside(request.query_params.get("next", ""))
    if session is None and await access.session_of(request) is None:
        return page(request, "sign_in.html", _UNAUTHORIZED, form=_form(access, where, used=True))
    response = RedirectResponse(where, SEE_OTHER)
    if session is not None:
        set_cookie(request, response, session)
    return response


async def _sign_in_page(request: Request) -> Response:
    where = _inside(request.query_params.get("next", ""))
    return page(request, "sign_in.html", form=_form(access_of(request), where))


async def _sign_in(request: Request) -> Response:
    """Sign in with a key. It is looked at once and kept nowhere."""
    access, fields = access_of(request), await fields_of(request, ours=False)
    where = _inside(fields.get("next", ""))
    session = await access.sign_in(fields.get("key", "").strip())
    if session is None:
        form = _form(access, where, wrong=True)
        return page(request, "sign_in.html", _UNAUTHORIZED, form=form)
    response = RedirectResponse(where, SEE_OTHER)
    set_cookie(request, response, session)
    return response


async def _sign_out(request: Request) -> Response:
    access = access_of(request)
    await fields_of(request)
    await access.sign_out(request)
    response = RedirectResponse(SIGN_IN, SEE_OTHER)
    forget_cookie(request, response)
    return response


def _form(
    access: Access, where: str, *, wrong: bool = False, used: bool = False
) -> dict[str, object]:
    return {"by_key": access.by_key, "next": where, "wrong": wrong, "used": used}


def _inside(where: str) -> str:
    """Where to go after signing in: a page of the console, whatever the address says."""
    path = where.partition("?")[0]
    inside = path == HOME or path.startswith(f"{HOME}/")
    plain = where.isascii() and where.isprintable() and "\\" not in where
    return where if inside and plain and len(where) <= _MAX_NEXT else HOME
