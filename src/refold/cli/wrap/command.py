"""`refold wrap`: its options, and what it says before the agent starts."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

from refold.cli.left_out import print_left_out
from refold.cli.options import STORE, ProfileChoice, StoreOption, where_is
from refold.cli.outcome import exit_on_error, failed, require_extra
from refold.cli.wrap.agents import AGENTS, Agent, Endpoint, Host, Launch, agent_for, launch
from refold.cli.wrap.processes import MEMORY, GatewayKeeper, run_agent
from refold.cli.wrap.receipt import closing_lines
from refold.settings import Settings, load_settings
from refold.stores.sql import without_password
from refold.user_files import state_folder, write_whole

_PLACEHOLDER: Final = "http://127.0.0.1:PORT/SECRET"
_PATIENCE: Final = 10.0
"""Seconds that an agent may take to say something about itself."""
_MAX_STORES: Final = 100
_NOT_FOUND: Final = 127


def wrap(  # noqa: PLR0913 - an option each
    *,
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="AGENT [ARGUMENTS]...",
            help=f"{', '.join(AGENTS)}, or any command; then its own arguments.",
            show_default=False,
        ),
    ],
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue the agent's newest conversation in this folder."),
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Keep the conversation in the store.")
    ] = True,
    show: Annotated[
        bool, typer.Option("--print", help="Show what the agent would be given, and start nothing.")
    ] = False,
    store: StoreOption = STORE,
    profile: ProfileChoice = None,
) -> None:
    """Run a coding agent behind a gateway of its own, which keeps and compacts its conversation.

    The agent works as ever, with its own login, in this terminal. It gets the gateway's address by
    variables and flags of its own process: no file is changed, and the gateway ends with the agent.
    Its model can search and reread what was compacted.

    Example: refold wrap claude
    """
    with exit_on_error(), require_extra("wrap"):
        agent = agent_for(command[0])
        program = shutil.which(command[0])
        if program is None:
            raise _not_found(agent, command[0])
        settings = load_settings(profile)
        recall = find_spec("mcp") is not None
        host = _host(program)
        if show:
            started = launch(
                agent, host, Endpoint(_PLACEHOLDER, recall), command[1:], resume=resume
            )
            typer.echo("\n".join(_shown(command[0], started, where_is(store), keep=keep)))
            return
        print_left_out(settings)
        raise typer.Exit(
            _run(agent, program, host, command, settings, _Where(store, profile, keep), resume)
        )


@dataclass(frozen=True, slots=True)
class _Where:
    """Where the conversation is kept, and how."""

    store: str
    profile: str | None
    keep: bool

    @property
    def address(self) -> str:
        return _whole(where_is(self.store)) if self.keep else MEMORY


def _run(  # noqa: PLR0913, PLR0917 - made in one place
    agent: Agent,
    program: str,
    host: Host,
    command: Sequence[str],
    settings: Settings,
    where: _Where,
    resume: bool,  # noqa: FBT001
) -> int:
    keeper = GatewayKeeper(where.address, where.profile, host.folder)
    endpoint = Endpoint(keeper.address, recall=find_spec("mcp") is not None)
    started = launch(agent, host, endpoint, command[1:], resume=resume)
    if where.keep:
        _announce(where.address, settings)
    for note in started.notes:
        typer.echo(f"refold: {note}", err=True)
    if not endpoint.recall:
        typer.echo(
            "refold: The model cannot search what was compacted: pip install 'refold[wrap]'",
            err=True,
        )
    upstreams = [upstream.model_dump(mode="json") for upstream in started.upstreams]
    keeper.start(upstreams, started.windows)
    try:
        code = run_agent([program, *started.arguments], started.environment, keeper)
    finally:
        keeper.end()
    for line in closing_lines(keeper.receipt, keep=where.keep):
        typer.echo(f"refold: {line}", err=True)
    if keeper.given_up:
        again = shlex.join(["refold", "wrap", "--resume", command[0]])
        typer.echo(f"refold: The gateway failed: {keeper.last_errors()[-500:]}", err=True)
        typer.echo(f"refold: Continue with: {again}", err=True)
    return code


def _host(program: str) -> Host:
    def read(path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    def run(arguments: Sequence[str]) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - the user's own agent
                [program, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
            return ""
        # Some say it on standard error.
        return done.stdout or done.stderr if done.returncode == 0 else ""

    return Host(os.environ, Path.home(), Path.cwd(), read, run)


def _not_found(agent: Agent, name: str) -> typer.Exit:
    fix = (
        f"Install it: {agent.install}"
        if agent.install
        else f"Name {', '.join(AGENTS)}, or any command that is on the path."
    )
    return failed("not-found", f"There is no command {name!r}.", fix, _NOT_FOUND)


def _whole(address: str) -> str:
    """The store's address, which holds from any folder."""
    sqlite = "sqlite:///"
    if address.startswith(sqlite):
        return sqlite + str(Path(address.removeprefix(sqlite)).absolute())
    return address


def _shown(name: str, started: Launch, address: str, *, keep: bool) -> Iterator[str]:
    for variable, value in started.environment.items():
        yield f"export {variable}={shlex.quote(value)}"
    yield shlex.join([name, *started.arguments])
    yield ""
    for upstream in started.upstreams:
        yield f"# Its requests go on to {upstream.base_url}, with the agent's own login."
    kept = without_password(address) if keep else "nowhere: nothing is kept"
    yield f"# The conversation is kept in {kept}."
    for note in started.notes:
        yield f"# {note}"


def _announce(address: str, settings: Settings) -> None:
    """Say what is kept, where and for how long, the first time for each store."""
    path = state_folder() / "wrap.json"
    try:
        seen: list[object] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        seen = []
    subject = [address, settings.profile.retention.days]
    if subject in seen:
        return
    for line in first_notice(address, settings):
        typer.echo(f"refold: {line}", err=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, json.dumps([*seen, subject][-_MAX_STORES:]).encode())
    except OSError:
        pass  # it is said again the next time


def first_notice(address: str, settings: Settings) -> Iterator[str]:
    """What a user should know before the first conversation is kept."""
    days = settings.profile.retention.days
    yield f"All that this agent and its model say is kept in {without_password(address)},"
    until = f"nobody has used it for {days} days" if days else "you erase it"
    other = "0" if days else "30"
    yield f"until {until}. To change that: refold config retention.days {other}"
    yield "Keep nothing: refold wrap --no-keep. Erase one: refold forget. Look: refold sessions"
