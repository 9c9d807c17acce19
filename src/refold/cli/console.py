"""`refold console`: pages of what models saw, in a browser, without a gateway."""

import asyncio
import json
import os
import sys
import webbrowser
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final

import typer

from refold.cli.options import (
    STORE,
    StoreOption,
    TenantOption,
    log_to_read,
    session_names,
    store_at,
)
from refold.cli.outcome import exit_on_error, require_extra
from refold.log import DEFAULT_TENANT

if TYPE_CHECKING:
    from refold.settings import Settings

_HOST: Final = "127.0.0.1"
_MAX_PORT: Final = 65_535


def console(  # noqa: PLR0913 - an option each
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION]",
            help="Open this session instead of the list.",
            show_default=False,
            autocompletion=session_names,
        ),
    ] = None,
    *,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=_MAX_PORT,
            help="Listen on this port of this machine; 0 is any free one.",
        ),
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open it in a browser.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the address as JSON, on one line.")
    ] = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Look at sessions in a browser: the messages, what each request sent, and what it cost.

    It reads the store and changes nothing. It calls no model, needs no key and no network, and is
    reachable only from this machine. `refold serve` has the same pages, for teams too. Stop it with
    Ctrl+C.

    Example: refold console support-42
    """
    with exit_on_error(), require_extra("serve"):
        from refold.settings import load_settings  # noqa: PLC0415 - slow

        asyncio.run(
            _console(
                *(load_settings(), store, tenant, session),
                port=port,
                browser=browser,
                as_json=as_json,
            )
        )


async def _console(  # noqa: PLR0913 - made in one place
    settings: "Settings",
    address: str,
    tenant: str,
    session: str | None,
    *,
    port: int,
    browser: bool,
    as_json: bool,
) -> None:
    from refold.console.access import HOME, Access  # noqa: PLC0415 - optional
    from refold.console.app import open_address  # noqa: PLC0415 - optional
    from refold.console.local import LocalConsole, application  # noqa: PLC0415 - optional
    from refold.console.pages import session_url  # noqa: PLC0415 - optional
    from refold.service import server  # noqa: PLC0415 - optional

    async with log_to_read(address, tenant, gone="There is nothing left to look at.") as log:
        then = HOME if session is None else session_url((await log.info(session)).session)
    sock = server.listen(_HOST, port)
    try:
        where = server.address_of(sock)

        def offer_another() -> None:
            typer.echo(f"For another browser: {open_address(where, access.new_token())}", err=True)

        state = LocalConsole(settings, store_at(address, create=False))
        access = Access(state, tenant, token_used=offer_another)
        app = application(state, access)

        def on_start() -> None:
            url = open_address(where, access.new_token(), then)
            if as_json:
                typer.echo(json.dumps({"console": url}))
                return
            typer.echo(f"The console is at {url}", err=True)
            typer.echo("This address works once. Stop with Ctrl+C.", err=True)
            if browser:
                _open(url)

        await server.serve(app, sock, on_start)
    finally:
        sock.close()


def _open(url: str) -> None:
    """Open a browser if there is a screen for it: one for terminals would take this one over."""
    graphical = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    )
    if graphical:
        with suppress(webbrowser.Error, OSError):
            webbrowser.open(url)
