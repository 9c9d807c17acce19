"""The store: whether it can be used, where it lies, and what is unfinished in it."""

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from shlex import join, quote

from refold.cli.checks.row import Row, ok, problem, short, warning
from refold.cli.options import own_store, store_at, where_is
from refold.engine.ends import running
from refold.errors import RefoldError
from refold.log import Log
from refold.stores import open_store
from refold.stores.sqlite.migrate import shipped

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")
_ELSEWHERE = "Or choose another place: export REFOLD_STORE=sqlite:///FILE"
_LITTLE, _TOO_LITTLE = 500 << 20, 20 << 20
_MB = 1_000_000
_LOOKED_AT = 50
"""Sessions, last used first, that are looked at for folds."""
_AHEAD = 300_000
"""Milliseconds that an entry may seem to come from the future."""
_CLOUDS = (
    "dropbox",
    "onedrive",
    "google drive",
    "googledrive",
    "icloud",
    "mobile documents",
    "cloudstorage",
    "nextcloud",
    "owncloud",
    "pcloud",
    "box sync",
)
_DISTANT = ("nfs", "cifs", "smb", "fuse.sshfs", "9p", "afs", "davfs", "fuse.glusterfs", "ceph")
_MOUNTS = Path("/proc/mounts")


async def stored(store: str, tenant: str, *, mounts: Path = _MOUNTS) -> list[Row]:
    """What there is to say about the store at an address."""
    address = where_is(store)
    if address.startswith(_POSTGRES):
        rows = await _server(address, tenant)
    elif address.startswith(_SQLITE) and len(address) > len(_SQLITE):
        path = Path(address.removeprefix(_SQLITE))
        rows = [await _file(store, path), _room(path), _place(path, mounts)]
        if not _is_there(path):
            return rows
    else:
        failure = await _opened(store)
        return [failure] if failure else [ok("store", address)]
    if rows[0].verdict != "problem":
        async with store_at(store, create=False) as opened:
            log = opened.log(tenant)
            rows += [await _folds(log), await _clock(log)]
    return rows


def _is_there(path: Path) -> bool:
    return path.is_file()


async def _opened(store: str) -> Row | None:
    """Why the store cannot be opened; None if it can."""
    try:
        async with store_at(store, create=False):
            return None
    except RefoldError as error:
        return problem("store", error.what, error.fix)


async def _file(store: str, path: Path) -> Row:
    return _unusable(path) or await _opened(store) or _usable(path)


def _unusable(path: Path) -> Row | None:
    """What there is to say of a file before it is opened; None if nothing keeps us from it."""
    if not path.exists():
        return _not_yet(path)
    if path.is_dir():
        return problem("store", f"{short(path)} is a folder", f"Name a file in it. {_ELSEWHERE}")
    closed = [one for one in (*_files(path), path.parent) if not os.access(one, os.R_OK | os.W_OK)]
    if closed:
        names = ", ".join(map(short, closed))
        return problem("store", f"{names} cannot be written", _let_in(closed))
    return None


def _usable(path: Path) -> Row:
    size = sum(one.stat().st_size for one in _files(path))
    return ok("store", f"{short(path)}, {size / _MB:,.1f} MB, schema {len(shipped())}")


def _files(path: Path) -> list[Path]:
    """The store's file, and those that SQLite keeps beside it while it is open."""
    beside = (path.with_name(f"{path.name}-{end}") for end in ("wal", "shm"))
    return [path, *(one for one in beside if one.exists())]


def _not_yet(path: Path) -> Row:
    above = next(one for one in path.resolve().parents if one.exists())
    if not above.is_dir():
        return problem(
            "store", f"{short(path)} cannot be made: {short(above)} is no folder", _ELSEWHERE
        )
    if not os.access(above, os.W_OK | os.X_OK):
        return problem(
            "store",
            f"{short(path)} cannot be made: {short(above)} cannot be written",
            _let_in([above]),
        )
    if not path.parent.exists() and path != own_store():  # whose folder is made with it
        return problem(
            "store",
            f"{short(path)} cannot be made: there is no folder {short(path.parent)}",
            join(["mkdir", "-p", str(path.parent)]),
        )
    return ok("store", f"{short(path)} is made when it is first needed")


def _let_in(closed: Sequence[Path]) -> str:
    """How this user gets to read and write the files and folders."""
    names = join(map(str, closed))
    if any(os.statvfs(one).f_flag & os.ST_RDONLY for one in closed):
        return f"Their file system is mounted read-only. Mount it for writing. {_ELSEWHERE}"
    if all(one.stat().st_uid == os.geteuid() for one in closed):
        rights = "u+rwx" if any(one.is_dir() for one in closed) else "u+rw"
        return f"chmod {rights} {names}"
    return f"Another user owns them: sudo chown {os.geteuid()} {names}. {_ELSEWHERE}"


async def _server(address: str, tenant: str) -> list[Row]:
    """A database on a PostgreSQL server, as the role of the address finds it."""
    try:
        opened = open_store(address)  # says so where the driver is not installed
        from refold.stores.postgres.owning import access, condition  # noqa: PLC0415 - optional

        found, rights = await condition(address), await access(address)
        async with opened:
            pass
    except RefoldError as error:
        return [problem("store", error.what, error.fix)]
    name = f"{rights.database}, schema {found.schema}, as {found.role}"
    if rights.read_only:
        return [
            problem(
                "store",
                f"{name}: it can be read, and not written",
                "Use the address of the primary server. If it is that one, see its "
                "`default_transaction_read_only`.",
            )
        ]
    if rights.lacking:
        tables = ", ".join(rights.lacking)
        return [
            problem(
                "store",
                f"{name}: this role may not write {tables}",
                f"Run as the owner of the database: refold store migrate --role {found.role}",
            )
        ]
    if found.tenant is not None and found.tenant != tenant:
        return [
            problem(
                "store",
                f"{name}: this role may use tenant {found.tenant!r} alone, not {tenant!r}",
                f"Add --tenant {quote(found.tenant)}, or use the address of another role.",
            )
        ]
    rows = [ok("store", name)]
    if not found.isolated:
        rows.append(
            warning(
                "tenants",
                f"the server keeps {found.role} from no tenant's rows: it may do everything",
                "Use a role that has nothing but LOGIN, and let it in as the owner of the "
                "database: refold store migrate --role NAME",
            )
        )
    return rows


def _room(path: Path) -> Row:
    above = next(one for one in path.resolve().parents if one.exists())
    free = shutil.disk_usage(above).free
    found = f"{free / _MB:,.0f} MB free in {short(above)}"
    if free > _LITTLE:
        return ok("disk", found)
    remedy = "Free some disk space there, or move the store and name it in REFOLD_STORE."
    return (warning if free > _TOO_LITTLE else problem)("disk", found, remedy)


def _place(path: Path, mounts: Path) -> Row:
    whole = path.resolve()
    cloud = next((one for one in whole.parts if one.lower().startswith(_CLOUDS)), None)
    kind = _file_system(whole, mounts)
    if cloud is None and not kind.startswith(_DISTANT):
        return ok("place", "on a disk of this machine" if kind else "not known to be shared")
    where = f"in {cloud}, which copies files while they are written" if cloud else f"on {kind}"
    return warning(
        "place",
        f"The store lies {where}; a database there can be damaged",
        f"Move {path} to a disk of this machine and name it: export REFOLD_STORE=sqlite:///FILE",
    )


def _file_system(path: Path, mounts: Path) -> str:
    """The kind of file system that a path lies on; empty where the system does not say."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    rows = [line.split() for line in lines]
    found = [(row[1].replace("\\040", " "), row[2]) for row in rows if len(row) > 2]  # noqa: PLR2004 - device, folder, kind
    above = [(len(at), kind) for at, kind in found if path.is_relative_to(at)]
    return max(above, default=(0, ""))[1]


async def _folds(log: Log) -> Row:
    page = await log.sessions(limit=_LOOKED_AT)
    left = [one for one in page.sessions if await _left_behind(log, one.session)]
    if not left:
        return ok("folds", "none is unfinished")
    names = ", ".join(repr(one.session) for one in left[:5])
    ours = next((one.session for one in left if one.format == "pydantic-ai"), None)
    again = "opening a session takes its fold up again"
    return warning(
        "folds",
        f"begun and never ended, in {len(left)} sessions: {names}",
        f"refold chat {quote(ours)}  # {again}"
        if ours
        else f"Open {names} with the program that keeps it: {again}.",
    )


async def _left_behind(log: Log, session: str) -> bool:
    """Whether a fold was begun there that nobody makes any more."""
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
    newest = max((one.updated_at for one in page.sessions), default=0)
    if newest <= now + _AHEAD:
        return ok("clock", "not behind what was logged")
    return warning(
        "clock",
        f"{(newest - now) // 60_000:,} minutes behind the newest entry of the store",
        "Set the clock of this machine: sudo timedatectl set-ntp true",
    )
