import asyncio
import json
import os
import platform
import shutil
import sqlite3
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from shlex import join, quote
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from refold import __version__
from refold.cli.chat.models.local_servers import public, running_here
from refold.cli.chat.models.providers import LOCAL, PROVIDERS, Choice, chosen_model, keys_found
from refold.cli.left_out import left_out_notice
from refold.cli.options import (
    POSTGRES,
    STORE,
    StoreOption,
    TenantOption,
    own_store,
    store_at,
    where_is,
)
from refold.cli.outcome import FAILED, exit_on_error
from refold.cli.output import Row, Verdict, ok, problem, short, terminal_width, warning
from refold.engine.protocol import running
from refold.errors import RefoldError
from refold.exports.moments import counted
from refold.log import DEFAULT_TENANT, Log
from refold.models import counter_for, facts_of, family_of
from refold.settings import Settings, load_settings
from refold.settings.files import project_files, user_files
from refold.stores import open_store
from refold.stores.sqlite.store import shipped

Missing = Callable[[str], bool]

_STYLES: Final[dict[Verdict, str]] = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_MIN_TEXT: Final = 24  # columns
_EXTRAS = {
    "chat": (
        ("pydantic_ai", "pydantic-ai-slim"),
        ("prompt_toolkit", "prompt-toolkit"),
        ("mcp", "mcp"),
    ),
    "models": (("genai_prices", "genai-prices"), ("rs_bpe", "rs-bpe")),
}
_FOR = {"chat": "`refold chat`", "models": "exact counts of tokens, windows and prices"}
_SQLITE = "sqlite:///"
_ELSEWHERE = "Or choose another place: export REFOLD_STORE=sqlite:///FILE"
_LITTLE_SPACE, _TOO_LITTLE_SPACE = 500 << 20, 20 << 20
_MB = 1_000_000
_LOCK_WAIT = 3.0  # seconds: longer than any write of ours holds the lock
_MAX_SESSIONS = 50
"""Sessions, last used first, that are checked for unfinished folds."""
_MAX_AHEAD = 300_000
"""Milliseconds that an entry may seem to come from the future."""
_CLOUDS = (
    *("dropbox", "onedrive", "google drive", "googledrive", "icloud", "mobile documents"),
    *("cloudstorage", "nextcloud", "owncloud", "pcloud", "box sync"),
)
_REMOTE = ("nfs", "cifs", "smb", "fuse.sshfs", "9p", "afs", "davfs", "fuse.glusterfs", "ceph")
_MOUNTS = Path("/proc/mounts")
_NARROW = 60
_COMPLETIONS = {
    "bash": ".bash_completions/refold.sh",
    "zsh": ".zfunc/_refold",
    "fish": ".config/fish/completions/refold.fish",
}


def configured(environ: Mapping[str, str] = os.environ) -> Iterator[Row]:
    """Settings, keys, servers, and the model that a chat would use."""
    try:
        settings = load_settings()
    except RefoldError as error:
        yield problem("settings", error.what, error.fix)
        settings = None
    else:
        files = [*user_files(), *project_files(Path.cwd())]
        where = ", ".join(short(f.path) for f in files) or "no files, all as the profile says"
        yield ok("settings", f"profile {settings.profile.name}; {where}")
        if settings.left_out:
            yield warning("trust", left_out_notice(settings.left_out), "refold trust")
    keys = keys_found(environ)
    yield ok("keys", ", ".join(keys) or "none in the environment")
    servers = [f"{s.kind} at {public(s.url)} ({', '.join(s.models[:3])})" for s in running_here()]
    yield ok("local servers", "; ".join(servers) or "none answers")
    if settings is not None:
        yield from _model(settings, environ)


def _model(settings: Settings, environ: Mapping[str, str]) -> Iterator[Row]:
    try:
        chosen = chosen_model(None, settings, environ)
    except RefoldError as error:
        yield warning("model", error.what, error.fix)
        return
    provider = next((one for one in PROVIDERS if chosen.name.startswith(f"{one.name}:")), None)
    if provider is not None and not provider.installed:
        yield problem(
            "model",
            f"{chosen.name}, because {chosen.why}; its package is not installed",
            f'pip install "pydantic-ai-slim[{provider.name}]"',
        )
    else:
        yield ok("model", f"{chosen.name}, because {chosen.why}")
    yield _window(chosen, settings)
    yield _price(chosen, settings)
    yield _tokens(chosen)


def _window(chosen: Choice, settings: Settings) -> Row:
    window = chosen.window or facts_of(chosen.name, settings.models).window
    if window:
        return ok("window", f"{window:,} tokens")
    return warning(
        "window",
        f"unknown for {chosen.name}: a request may be larger than it takes",
        f"refold config 'models.\"{chosen.name}\".window' 32000  # or what its maker says",
    )


def _price(chosen: Choice, settings: Settings) -> Row:
    prices = facts_of(chosen.name, settings.models).prices
    if prices.input is not None and prices.output is not None:
        return ok("prices", f"${prices.input:g} in, ${prices.output:g} out, for a million tokens")
    if chosen.name.startswith(f"{LOCAL}:"):
        return ok("prices", "none: it runs on a server of yours")
    name = f'refold config \'models."{chosen.name}"'
    return warning(
        "prices",
        f"unknown for {chosen.name}: what it costs is not shown",
        f"{name}.input_price' 1.0 && {name}.output_price' 4.0  # dollars for a million tokens",
    )


def _tokens(chosen: Choice) -> Row:
    counter = counter_for(chosen.name)
    exact = not counter.name.startswith("estimate")
    if exact or family_of(chosen.name).encoding is None:
        how = "counted exactly" if exact else "estimated, as its maker publishes no tokenizer"
        return ok("tokens", f"{how} ({counter.name}, {counter.spread:.0%} headroom)")
    return warning("tokens", "estimated: the tokenizer is missing", 'pip install "refold[models]"')


def _missing(module: str) -> bool:
    return find_spec(module) is None


def installed(missing: Missing = _missing) -> Iterator[Row]:
    """Python, Refold, and the packages of its extras."""
    yield ok("python", f"{platform.python_version()} at {sys.executable}")
    yield ok("refold", __version__)
    for extra, packages in _EXTRAS.items():
        absent = ", ".join(name for module, name in packages if missing(module))
        if absent:
            yield warning(
                f"extra {extra}",
                f"{absent} not installed; needed for {_FOR[extra]}",
                f'pip install "refold[{extra}]"',
            )
        else:
            versions = ", ".join(f"{name} {_version(name)}" for _, name in packages)
            yield ok(f"extra {extra}", versions)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"


async def stored(store: str, tenant: str, *, mounts: Path = _MOUNTS) -> list[Row]:
    """Whether the store can be used, where it is, and what is unfinished in it."""
    address = where_is(store)
    if address.startswith(POSTGRES):
        rows = await _server(address, tenant)
    elif address.startswith(_SQLITE) and len(address) > len(_SQLITE):
        path = Path(address.removeprefix(_SQLITE))
        file = _unusable(path) or _locked(path) or await _failure(store) or _usable(path)
        rows = [file, _room(path), _place(path, mounts)]
        if not path.is_file():  # noqa: ASYNC240 - nothing else runs meanwhile
            return rows
    else:
        return [await _failure(store) or ok("store", address)]
    if rows[0].verdict != "problem":
        async with store_at(store, create=False) as opened:
            log = opened.log(tenant)
            rows += [await _folds(log), await _clock(log)]
    return rows


async def _failure(store: str) -> Row | None:
    """Why the store cannot be opened; None if it can."""
    try:
        async with store_at(store, create=False):
            return None
    except RefoldError as error:
        return problem("store", error.what, error.fix)


def _unusable(path: Path) -> Row | None:
    """Why a file need not be opened; None if it can be."""
    if not path.exists():
        return _missing_file(path)
    if path.is_dir():
        return problem("store", f"{short(path)} is a folder", f"Name a file in it. {_ELSEWHERE}")
    closed = [p for p in (*_files(path), path.parent) if not os.access(p, os.R_OK | os.W_OK)]
    if closed:
        names = ", ".join(map(short, closed))
        return problem("store", f"{names} cannot be written", _permission_fix(closed))
    return None


def _locked(path: Path) -> Row | None:
    """That another process keeps others from writing; None if it does not.

    Opening the store would say so too, but waits as long for it as a conversation would.
    """
    if not path.is_file():
        return None
    with closing(sqlite3.connect(path, timeout=_LOCK_WAIT, isolation_level=None)) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                return None  # opening it as a store tells more
            who = f"Close the program that holds it; this lists them: fuser -v {quote(str(path))}"
            return problem("store", f"{short(path)} is locked by another process", who)
        db.execute("ROLLBACK")
    return None


def _usable(path: Path) -> Row:
    size = sum(file.stat().st_size for file in _files(path))
    return ok("store", f"{short(path)}, {size / _MB:,.1f} MB, schema {len(shipped())}")


def _files(path: Path) -> list[Path]:
    """The store's file, and those that SQLite keeps beside it while it is open."""
    extra = (path.with_name(f"{path.name}-{end}") for end in ("wal", "shm"))
    return [path, *(file for file in extra if file.exists())]


def _existing_parent(path: Path) -> Path:
    return next(parent for parent in path.resolve().parents if parent.exists())


def _missing_file(path: Path) -> Row:
    parent = _existing_parent(path)
    failure = f"{short(path)} cannot be made:"
    if not parent.is_dir():
        return problem("store", f"{failure} {short(parent)} is no folder", _ELSEWHERE)
    if not os.access(parent, os.W_OK | os.X_OK):
        fix = _permission_fix([parent])
        return problem("store", f"{failure} {short(parent)} cannot be written", fix)
    if not path.parent.exists() and path != own_store():  # whose folder is made with it
        fix = join(["mkdir", "-p", str(path.parent)])
        return problem("store", f"{failure} there is no folder {short(path.parent)}", fix)
    return ok("store", f"{short(path)} is made when it is first needed")


def _permission_fix(closed: Sequence[Path]) -> str:
    names = join(map(str, closed))
    if any(os.statvfs(path).f_flag & os.ST_RDONLY for path in closed):
        return f"Their file system is mounted read-only. Mount it for writing. {_ELSEWHERE}"
    if all(path.stat().st_uid == os.geteuid() for path in closed):
        rights = "u+rwx" if any(path.is_dir() for path in closed) else "u+rw"
        return f"chmod {rights} {names}"
    return f"Another user owns them: sudo chown {os.geteuid()} {names}. {_ELSEWHERE}"


async def _server(address: str, tenant: str) -> list[Row]:
    try:
        opened = open_store(address)  # says so where the driver is not installed
        from refold.stores.postgres.maintenance import access, condition  # noqa: PLC0415 - optional

        found, rights = await condition(address), await access(address)
        async with opened:
            pass
    except RefoldError as error:
        return [problem("store", error.what, error.fix)]
    name = f"{rights.database}, schema {found.schema}, as {found.role}"
    if rights.read_only:
        what = f"{name}: it can be read, and not written"
        fix = "Use the address of the primary server. If it is that one, see its "
        return [problem("store", what, fix + "`default_transaction_read_only`.")]
    if rights.lacking:
        what = f"{name}: this role may not write {', '.join(rights.lacking)}"
        fix = f"Run as the owner of the database: refold store migrate --role {found.role}"
        return [problem("store", what, fix)]
    if found.tenant is not None and found.tenant != tenant:
        what = f"{name}: this role may use tenant {found.tenant!r} alone, not {tenant!r}"
        fix = f"Add --tenant {quote(found.tenant)}, or use the address of another role."
        return [problem("store", what, fix)]
    if found.isolated:
        return [ok("store", name)]
    isolation = warning(
        "tenants",
        f"the server keeps {found.role} from no tenant's rows: it may do everything",
        "Use a role that has nothing but LOGIN, and let it in as the owner of the "
        "database: refold store migrate --role NAME",
    )
    return [ok("store", name), isolation]


def _room(path: Path) -> Row:
    parent = _existing_parent(path)
    free = shutil.disk_usage(parent).free
    found = f"{free / _MB:,.0f} MB free in {short(parent)}"
    if free > _LITTLE_SPACE:
        return ok("disk", found)
    remedy = "Free some disk space there, or move the store and name it in REFOLD_STORE."
    return (warning if free > _TOO_LITTLE_SPACE else problem)("disk", found, remedy)


def _place(path: Path, mounts: Path) -> Row:
    resolved = path.resolve()
    cloud = next((part for part in resolved.parts if part.lower().startswith(_CLOUDS)), None)
    kind = _file_system(resolved, mounts)
    if cloud is None and not kind.startswith(_REMOTE):
        return ok("place", "on a disk of this machine" if kind else "not known to be shared")
    where = f"in {cloud}, which copies files while they are written" if cloud else f"on {kind}"
    return warning(
        "place",
        f"The store lies {where}; a database there can be damaged",
        f"Move {path} to a disk of this machine and name it: export REFOLD_STORE=sqlite:///FILE",
    )


def _file_system(path: Path, mounts: Path) -> str:
    """The kind of file system of a path; empty where it is unknown."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    rows = [line.split() for line in lines]
    found = [(row[1].replace("\\040", " "), row[2]) for row in rows if len(row) > 2]  # noqa: PLR2004 - device, folder, kind
    containing = [(len(root), kind) for root, kind in found if path.is_relative_to(root)]
    return max(containing, default=(0, ""))[1]


async def _folds(log: Log) -> Row:
    page = await log.sessions(limit=_MAX_SESSIONS)
    abandoned = [info for info in page.sessions if await _has_abandoned_fold(log, info.session)]
    if not abandoned:
        return ok("folds", "none is unfinished")
    names = ", ".join(repr(info.session) for info in abandoned[:5])
    ours = next((info.session for info in abandoned if info.format == "pydantic-ai"), None)
    again = "opening a session takes its fold up again"
    return warning(
        "folds",
        f"begun and never ended, in {counted(len(abandoned), 'session')}: {names}",
        f"refold chat {quote(ours)}  # {again}"
        if ours
        else f"Open {names} with the program that keeps it: {again}.",
    )


async def _has_abandoned_fold(log: Log, session: str) -> bool:
    if not await running(log, session):
        return False
    lock = await log.locks().take(session)
    if lock is None:
        return False
    lock.release()
    return bool(await running(log, session))


async def _clock(log: Log) -> Row:
    page = await log.sessions(limit=1)
    now = time.time_ns() // 1_000_000
    newest = max((info.updated_at for info in page.sessions), default=0)
    if newest <= now + _MAX_AHEAD:
        return ok("clock", "not behind what was logged")
    return warning(
        "clock",
        f"{(newest - now) // 60_000:,} minutes behind the newest entry of the store",
        "Set the clock of this machine: sudo timedatectl set-ntp true",
    )


def terminal(
    environ: Mapping[str, str] = os.environ, *, encoding: str | None = None
) -> Iterator[Row]:
    """Width, colors, characters, and the completion of the shell."""
    yield _size(environ)
    charset = encoding or sys.stdout.encoding
    if charset.lower().replace("-", "") == "utf8":
        yield ok("characters", "UTF-8")
    else:
        what = f"{charset}: other scripts and lines of boxes cannot be shown"
        yield warning("characters", what, "export PYTHONUTF8=1 LANG=C.UTF-8")
    yield _completion(environ)


def _size(environ: Mapping[str, str]) -> Row:
    if not sys.stdout.isatty() and "COLUMNS" not in environ:
        return ok("terminal", "none: the output is read by a program")
    columns = shutil.get_terminal_size().columns
    kind = environ.get("TERM", "")
    if kind in ("", "dumb"):
        return warning(
            "terminal",
            "it says that it can neither move the cursor nor show colors: chats are plain",
            "export TERM=xterm-256color",
        )
    if columns < _NARROW:
        return warning("terminal", f"{columns} columns", "Make the window 80 columns wide.")
    colors = "no colors (NO_COLOR)" if environ.get("NO_COLOR") else "colors"
    within = ", in tmux" if environ.get("TMUX") else ""
    return ok("terminal", f"{kind}, {columns} columns, {colors}{within}")


def _completion(environ: Mapping[str, str]) -> Row:
    shell = Path(environ.get("SHELL", "")).name
    file = _COMPLETIONS.get(shell)
    if file is None:
        return ok("completion", f"not known for {shell or 'this shell'}")
    if (Path.home() / file).exists():
        return ok("completion", f"installed for {shell}")
    return warning("completion", f"not installed for {shell}", "refold --install-completion")


def doctor(
    *,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="Check a coding agent instead: claude, codex, opencode, copilot, qwen or pi.",
            show_default=False,
        ),
    ] = None,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Check that everything works, and say how to fix what doesn't.

    With --agent, a coding agent is started once behind a gateway on this machine. The gateway
    answers its request with an error, so no provider is called and nothing is billed.

    The exit code is 1 if there is a problem; warnings don't count. Only the names of keys are
    shown.

    Example: refold doctor
    """
    with exit_on_error():
        if agent is not None:
            from refold.cli.agent_doctor import checked  # noqa: PLC0415 - needs an extra

            rows = [*checked(agent, store, tenant)]
        else:
            rows = [*installed(), *asyncio.run(stored(store, tenant)), *configured(), *terminal()]
        if as_json:
            typer.echo(json.dumps([row._asdict() for row in rows], ensure_ascii=False, indent=2))
        else:
            _print(rows)
        if any(row.verdict == "problem" for row in rows):
            raise typer.Exit(FAILED)


def _print(rows: Sequence[Row]) -> None:
    console = Console(highlight=False, markup=False, emoji=False)
    width = max(len(row.name) for row in rows)
    for row in rows:
        text = Text.assemble((f"{row.verdict:<9}", _STYLES[row.verdict]), f"{row.name:<{width}}  ")
        indent = len(text)
        text.append(_wrap(row.found, indent))
        if row.remedy:
            text.append(f"\n{' ' * indent}→ ", "bold")
            # A sentence is wrapped; a command stays in one piece, so that it can be copied.
            sentence = row.remedy[:1].isupper()
            text.append(_wrap(row.remedy, indent + 2) if sentence else row.remedy)
        console.print(text, soft_wrap=True)
    count = Counter(row.verdict for row in rows)
    ending = "All is well."
    if count["problem"] or count["warning"]:
        numbers = ((count[verdict], verdict) for verdict in ("problem", "warning"))
        texts = (f"{number or 'no'} {noun}{'' if number == 1 else 's'}" for number, noun in numbers)
        ending = f"{', '.join(texts)}."
    console.print(Text(ending, "bold"), soft_wrap=True)


def _wrap(text: str, indent: int) -> str:
    room = max(_MIN_TEXT, terminal_width() - indent)
    lines = textwrap.wrap(text, room, break_on_hyphens=False, break_long_words=False)
    return f"\n{' ' * indent}".join(lines)
