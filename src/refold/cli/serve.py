"""`refold serve`."""

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from refold.cli.choosing import ProfileChoice
from refold.cli.left_out import say_left_out
from refold.cli.metrics import metrics_at
from refold.cli.options import STORE, StoreOption, store_at, where_is
from refold.cli.outcome import explained, needing
from refold.errors import InvalidInput

if TYPE_CHECKING:
    from refold.settings import Settings


def serve(  # noqa: PLR0913 - an option each
    *,
    store: StoreOption = STORE,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Listen there.", show_default="serve.host"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65_535,
            help="Listen on this port; 0 is any free one.",
            show_default="serve.port",
        ),
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(
            "--upstream",
            metavar="URL",
            help="Ask all models at this server, in whichever format: http://127.0.0.1:8080/v1.",
            show_default="serve.upstreams",
        ),
    ] = None,
    worker: Annotated[
        bool,
        typer.Option("--worker/--no-worker", help="Make folds here too, for a store on a server."),
    ] = True,
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", metavar="HOST:PORT", help="Serve metrics for Prometheus there."),
    ] = None,
    fail_open: Annotated[
        bool | None,
        typer.Option(
            "--fail-open/--no-fail-open",
            help="While the store is unavailable, pass requests on unmanaged instead of refusing "
            "them.",
            show_default="serve.fail_open",
        ),
    ] = None,
    profile: ProfileChoice = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print where it listens as JSON, on one line.")
    ] = False,
) -> None:
    """Answer agents at one address: a gateway to their models, and an API to their sessions.

    Clients of OpenAI and Anthropic need no more than its address as their base URL. On this
    machine alone it needs no keys; to listen elsewhere, make one first: refold keys create. The
    settings under [serve] say where requests go on to, and how much is let through. On SIGTERM or
    Ctrl+C it takes nothing new, and lets what is under way end.

    Example: refold serve --store sqlite:///refold.db --port 8790
    """
    with explained(), needing("serve"):
        from refold.settings import load_settings  # noqa: PLC0415 - slow

        settings = load_settings(profile)
        say_left_out(settings)
        if upstream is not None:
            settings = _with_upstream(settings, upstream)
        if fail_open is not None:
            serve = settings.serve.model_copy(update={"fail_open": fail_open})
            settings = replace(settings, serve=serve)
        own = settings.serve
        with metrics_at(metrics):
            asyncio.run(
                _serve(
                    settings,
                    where_is(store),
                    host or own.host,
                    own.port if port is None else port,
                    worker=worker,
                    as_json=as_json,
                )
            )


def _with_upstream(settings: "Settings", address: str) -> "Settings":
    """The settings, with this server for all models."""
    from refold.settings import UpstreamSettings  # noqa: PLC0415 - slow

    try:
        only = UpstreamSettings(name="upstream", base_url=address)
    except ValidationError as error:
        raise InvalidInput(
            f"{address!r} is not the address of a server.",
            "Give it as --upstream http://127.0.0.1:8080/v1.",
        ) from error
    serve = settings.serve.model_copy(update={"upstreams": (only,)})
    return replace(settings, serve=serve)


async def _serve(  # noqa: PLR0913 - made in one place
    settings: "Settings", address: str, host: str, port: int, *, worker: bool, as_json: bool
) -> None:
    from refold.service import listening  # noqa: PLC0415 - optional
    from refold.service.app import app  # noqa: PLC0415 - optional

    listening.log_to_standard_error()
    listening.raise_file_limit()
    sock = listening.bound(host, port)
    try:
        keys = await listening.check_keys(store_at(address, create=True), sock)
        local = listening.is_local(sock)
        kept = store_at(address, create=True, connect=settings.serve.times.store)
        made = app(settings, store=kept, address=address, local=local, worker=worker)
        where = listening.address_of(sock)

        def started() -> None:
            if as_json:
                typer.echo(json.dumps({"address": where, "keys": keys}))
            else:
                typer.echo(_said(where, keys=keys), err=True)

        listening.calm_garbage_collection()
        await listening.serve(made, sock, started)
    finally:
        sock.close()


def _said(where: str, *, keys: bool) -> str:
    needed = (
        "Every request needs a key (refold keys list)."
        if keys
        else "No key is needed on this machine (refold keys create makes one)."
    )
    return (
        f"Refold answers at {where}. {needed}\n"
        f"  export OPENAI_BASE_URL={where}/v1\n"
        f"  export ANTHROPIC_BASE_URL={where}\n"
        f"API: {where}/api/v1/openapi.json. Stop with Ctrl+C."
    )
