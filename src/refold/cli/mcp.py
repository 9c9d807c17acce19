"""`refold mcp`: recall for any client of MCP."""

import asyncio
import json
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Final

import typer

from refold.cli.options import (
    STORE,
    StoreOption,
    TenantOption,
    log_to_read,
    session_names,
)
from refold.cli.outcome import exit_on_error, require_extra
from refold.errors import InvalidInput, SessionNotFound
from refold.log import DEFAULT_TENANT, Log

_MAX_RECENT: Final = 16
_MAX_PORT: Final = 65_535
_GLANCE: Final = 0.01


def mcp(
    *,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="NAME",
            help="The conversation to read; default: the caller's own.",
            show_default="found",
            autocompletion=session_names,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=_MAX_PORT,
            help="Answer at http://127.0.0.1:N/mcp, for programs on this machine; 0 is any free "
            "port.",
            show_default="standard input and output",
        ),
    ] = None,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Let a model search and reread its conversation, as an MCP server.

    It has three tools: recall_search, recall_read and recall_history. They read a conversation that
    this store has, compacted parts included, and change nothing. Without a port it speaks MCP on
    standard input and output, as agents start their servers. refold wrap gives its agent these
    tools by itself.

    Example: refold mcp --session parcels
    """
    with exit_on_error(), require_extra("mcp"):
        asyncio.run(_serve(store, tenant, session, port))


async def _serve(store: str, tenant: str, session: str | None, port: int | None) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - optional

    from refold.service.recall_mcp import (  # noqa: PLC0415 - optional
        Conversations,
        ToolCall,
        recall_server,
    )

    async with log_to_read(store, tenant, gone="It is gone for good.") as log:
        if session is not None:
            await log.info(session)
        conversations = Conversations(log, lambda: _recent(log))

        async def session_of(call: ToolCall) -> str | None:
            return session or await conversations.calling(call)

        server = recall_server(log, session_of)
        if port is None:
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())
            return
        import uvicorn  # noqa: PLC0415 - optional

        app = server.streamable_http_app(stateless_http=True, json_response=True)
        config = uvicorn.Config(app, log_level="error", access_log=False, ws="none")
        with _listening(port) as sock:
            where = f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
            http = uvicorn.Server(config)
            serving = asyncio.create_task(http.serve(sockets=[sock]))
            # Whoever reads the address can connect: what is imported late is imported before.
            while not (http.started or serving.done()):  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(_GLANCE)
            if http.started:
                typer.echo(json.dumps({"address": where}))
            await serving


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise InvalidInput(
            f"Port {port} cannot be used: {os.strerror(error.errno or 0)}.",
            "Choose another with --port.",
        ) from error


async def _recent(log: Log) -> Sequence[str]:
    with suppress(SessionNotFound):
        page = await log.sessions(limit=_MAX_RECENT)
        return [info.session for info in page.sessions]
    return ()
