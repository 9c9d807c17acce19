"""The store: whether it can be used, where it lies, and what is unfinished in it."""

import os
import shutil
import time
from pathlib import Path
from shlex import quote

from refold.cli.checks.row import Row, ok, problem, short, warning
from refold.cli.options import store_at, where_is
from refold.engine.ends import running
from refold.errors import RefoldError, StoreNotFound
from refold.log import Log
from refold.stores.sqlite.migrate import shipped

_SQLITE = "sqlite:///"
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
    path = Path(address.removeprefix(_SQLITE))
    rows = [await _opened(store, path)]
    if address.startswith(_SQLITE):
        rows += [_room(path), _place(path, mounts)]
    if rows[0].verdict == "ok" and _is_there(path):
        async with store_at(store, create=False) as opened:
            log = opened.log(tenant)
            rows += [await _folds(log), await _clock(log)]
    return rows


def _is_there(path: Path) -> bool:
    return path.is_file()


async def _opened(store: str, path: Path) -> Row:
    try:
        async with store_at(store, create=False):
            pass
    except StoreNotFound:
        return _not_yet(path)
    except RefoldError as error:
        return problem("store", error.what, error.fix)
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return problem(
            "store", f"{short(path)} cannot be written", f"chmod u+w {path.parent} {path}"
        )
    files = [path, path.with_name(f"{path.name}-wal")]
    size = sum(one.stat().st_size for one in files if one.exists())
    return ok("store", f"{short(path)}, {size / _MB:,.1f} MB, schema {len(shipped())}")


def _not_yet(path: Path) -> Row:
    above = next(one for one in path.resolve().parents if one.exists())
    if above.is_dir() and os.access(above, os.W_OK):
        return ok("store", f"{short(path)} is made when it is first needed")
    return problem(
        "store",
        f"{short(path)} cannot be made: {short(above)} cannot be written",
        f"chmod u+w {above}, or choose another place: export REFOLD_STORE=sqlite:///FILE",
    )


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
