"""`refold chat`: its options, and how it runs. The surface starts before anything heavy loads."""

import asyncio
import os
import signal
import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, TextIO, cast

import typer

from refold.cli.chat.surface import ChatOptions, Surface
from refold.cli.options import (
    STORE,
    TENANT,
    ProfileChoice,
    StoreOption,
    TenantOption,
    full_terminal,
    session_names,
    where_is,
)
from refold.cli.outcome import exit_on_error, json_on_error, require_extra, wrong_usage
from refold.errors import InvalidInput
from refold.user_files import state_folder


def run_chat(options: ChatOptions, *, plain: bool) -> int:
    _prepare_libraries()
    surface = surface_for(plain=plain)
    return surface.host(lambda: _chat(options, surface))


def run_prompt(options: ChatOptions, prompt: str, *, as_json: bool) -> int:
    _prepare_libraries()
    return asyncio.run(_prompt(options, prompt, as_json=as_json))


def _prepare_libraries() -> None:
    # Both must be set before the libraries are imported. Pydantic AI prints a banner in the middle
    # of the first answer.
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
    # FastMCP reads settings from .env in the current folder, which may be a cloned repository.
    os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)


def surface_for(*, plain: bool) -> Surface:
    if plain:
        from refold.cli.chat.plain import Plain  # noqa: PLC0415 - one of two

        return Plain()
    from refold.cli.chat.terminal.terminal import Terminal  # noqa: PLC0415 - one of two

    return Terminal(history=state_folder() / "typed", color=not os.environ.get("NO_COLOR"))


async def _chat(options: ChatOptions, surface: Surface) -> int:
    # Imported here: the terminal takes input while these modules load.
    options = replace(options, store=where_is(options.store))
    from refold.cli.chat.assembly import (  # noqa: PLC0415 - see above
        chat_setup,
        consolidate_in_background,
        resume_command,
        session_to_resume,
        show_command,
    )
    from refold.cli.chat.chat import Chat  # noqa: PLC0415 - see above
    from refold.cli.chat.conversation import Conversation  # noqa: PLC0415 - see above
    from refold.cli.chat.models.providers import known_models  # noqa: PLC0415 - see above
    from refold.cli.chat.printing import farewell, greeting  # noqa: PLC0415 - see above

    session = partial(session_to_resume, options=options, surface=surface)
    async with chat_setup(options, surface.show, session) as setup:
        conversation = Conversation(setup.parts, "", surface.on_event, surface.refresh)
        try:
            await conversation.open()
            first = not (await conversation.log.sessions(limit=1)).sessions
            surface.show(greeting(setup.choice, options.store, first=first), gap=False)
            show = partial(show_command, options=options)
            chat = Chat(conversation, surface, known_models(os.environ), show)
            if setup.session:
                await conversation.go_to(setup.session)
                if setup.change:
                    surface.show(setup.change)
                await chat.show_tail()
            code = await chat.run()
            later = await consolidate_in_background(conversation, options)
            exists = conversation.name and await conversation.session() is not None
        finally:
            await conversation.close()
        if exists:
            surface.show(farewell(resume_command(conversation.name, options)))
        if later:
            surface.show("Meanwhile, what is worth keeping goes to this branch's board.", gap=False)
    return code


async def _prompt(options: ChatOptions, prompt: str, *, as_json: bool) -> int:
    options = replace(options, store=where_is(options.store))
    from refold.cli.chat.assembly import (  # noqa: PLC0415 - an extra's
        chat_setup,
        resume_command,
        session_from_options,
    )
    from refold.cli.chat.conversation import Conversation  # noqa: PLC0415 - an extra's
    from refold.cli.chat.printing import PrintedTurn, print_to_stderr  # noqa: PLC0415 - an extra's

    async with chat_setup(
        options, print_to_stderr, partial(session_from_options, options=options)
    ) as setup:
        turn = PrintedTurn(as_json=as_json)
        parts = replace(setup.parts, resume=partial(resume_command, options=options))
        conversation = Conversation(parts, "", turn.on_event, lambda: None)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, conversation.interrupt)
        try:
            await conversation.open()
            conversation.name = setup.session or ""
            if setup.change:
                print_to_stderr(setup.change)
            return await turn.run(conversation, prompt)
        finally:
            await conversation.close()


def chat(  # noqa: PLR0913 - an option each
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION]",
            help="The session to continue, or the name of a new one.",
            show_default=False,
            autocompletion=session_names,
        ),
    ] = None,
    *,
    resume: Annotated[
        bool,
        typer.Option("--resume", "-r", help="Continue SESSION; without a name, choose one."),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="PROVIDER:MODEL",
            help="The model; `local` is a server on this machine.",
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", metavar="URL", help="The address of the local server."),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="MODULE:NAME", help="Chat with this Pydantic AI agent."),
    ] = None,
    mcp: Annotated[
        Path | None,
        typer.Option("--mcp", metavar="FILE", help="Offer the tools of these MCP servers."),
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option("--files", metavar="DIR", help="Let the model read files in this folder."),
    ] = None,
    profile: ProfileChoice = None,
    board: Annotated[
        bool,
        typer.Option(
            "--board/--no-board",
            help="Give a new session the notes on this branch's board.",
        ),
    ] = True,
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt", "-p", metavar="TEXT", help="Send this message, print the answer, and exit."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="With -p: print JSON lines; the last is the answer.")
    ] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Plain lines only, for screen readers and logs.")
    ] = False,
    store: StoreOption = STORE,
    tenant: TenantOption = TENANT,
) -> None:
    """Chat with a model, and see and control what is in its context.

    It uses the first API key that it finds (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY and
    others), or a model server on this machine. If you have neither, try `refold demo`.

    Example: refold chat --files . --resume
    """
    options = ChatOptions(
        store, tenant, session, resume, model, base_url, agent, mcp, files, profile, board
    )
    final_line = json_on_error(session, model) if as_json else nullcontext()
    with final_line, exit_on_error(), require_extra("chat"):
        if prompt is not None or as_json:
            code = run_prompt(options, _with_input(prompt), as_json=as_json)
        else:
            code = run_chat(options, plain=plain or not _streams() or not full_terminal())
    raise typer.Exit(code)


def _with_input(prompt: str | None) -> str:
    stdin = cast("TextIO | None", sys.stdin)
    piped = "" if stdin is None or stdin.isatty() else stdin.read().strip()
    text = "\n\n".join(part for part in (prompt, piped) if part)
    with wrong_usage():
        if not text:
            raise InvalidInput("The message is empty.", 'Say it with -p "…", or through a pipe.')
    return text


def _streams() -> bool:
    """Whether there are an input and an output: a program may be started without."""
    return None not in cast("tuple[TextIO | None, ...]", (sys.stdin, sys.stdout))
