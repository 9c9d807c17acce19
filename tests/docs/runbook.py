"""A page of commands, and the world they are run in."""

import asyncio
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from free_ports import free_ports
from project_paths import DOCS

from refold.testing.postgres import SUPERUSER, Cluster

PAGE = DOCS / "gateway" / "runbook.md"
_BLOCK = re.compile(
    r"^(?:<!-- (?P<how>not executed|run): (?P<said>[^\n]*?) -->\n+)?"
    r"```(?P<language>[a-z]*)\n(?P<text>.*?)^```$"
    r"(?:\n<!-- then: (?P<then>\w+) -->$)?",
    re.MULTILINE | re.DOTALL,
)
_RUNS = {
    None: "here",
    "as the server": "server",
    "in the background": "background",
    "by test_runbook, with a server": "here",  # a page that another test runs, too, must say so
}
_NEEDS = ("pgbouncer", "curl")
_PORTS = ("PGBOUNCER_PORT", "RESTORED_PORT", "METRICS_PORT")


class Block(NamedTuple):
    line: int
    text: str
    runs: str
    then: str | None


def blocks(page: str) -> list[Block]:
    """The commands of a page; a fence that is neither run nor said not to be is an error."""
    found: list[Block] = []
    for one in _BLOCK.finditer(page):
        if one["how"] == "not executed" and one["said"] not in _RUNS:
            continue
        line = page.count("\n", 0, one.start("text")) + 1
        found.append(Block(line, _script(one), _RUNS[one["said"]], one["then"]))
    assert page.count("<!-- then: ") == sum(1 for one in found if one.then), "a check is left out"
    return found


def _script(one: re.Match[str]) -> str:
    match one["language"]:
        case "bash":
            return one["text"]
        case "python":
            return f"python - <<'PYTHON'\n{one['text']}PYTHON\n"
        case _:
            raise AssertionError(f"nobody runs {one['text']!r}")


def missing(block: Block) -> str | None:
    """A program that the block needs and that is not installed."""
    wanted = (name for name in _NEEDS if name in block.text)
    return next((name for name in wanted if shutil.which(name, path=_path()) is None), None)


def _path() -> str:
    return f"{os.environ['PATH']}{os.pathsep}/usr/sbin"


class World:
    """A server, folders for it, and what the commands so far have exported."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.folder = Path(tempfile.mkdtemp(prefix="refold-runbook-"))
        self.user = cluster._user
        self.running: list[subprocess.Popen[bytes]] = []
        for name in ("archive", "backup"):
            (self.folder / name).mkdir()
            self._give(self.folder / name)
        self._give(self.folder)
        self.env = self._environment()

    def _environment(self) -> dict[str, str]:
        ours = f"{Path(sys.executable).parent}{os.pathsep}{self.cluster.programs}"
        return {
            "PATH": f"{ours}{os.pathsep}{_path()}",
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "REFOLD_SERVE__TIMES__STORE": "30",  # a busy machine is no outage
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.cluster.port),
            "PGUSER": SUPERUSER,
            "PGDATA": str(self.cluster.data),
            "ARCHIVE": str(self.folder / "archive"),
            "BACKUP": str(self.folder / "backup"),
            **dict(zip(_PORTS, map(str, free_ports(len(_PORTS))), strict=True)),
        }

    def _give(self, path: Path) -> None:
        if self.user is not None:
            os.chown(path, pwd.getpwnam(self.user).pw_uid, -1)

    def address(self, role: str, database: str = "refold", port: str | None = None) -> str:
        return f"postgresql://{role}@127.0.0.1:{port or self.cluster.port}/{database}"

    async def run(self, block: Block) -> str:
        """Run a block; what it exports is there for the next one. What it printed."""
        if block.runs == "background":
            self._begin(block)
            return ""
        return await asyncio.to_thread(self._run, block)

    def _run(self, block: Block) -> str:
        kept = self.folder / "backup" / "env"
        script = f"set -euo pipefail\n{block.text}\nenv -0 > {kept}\n"
        done = subprocess.run(
            ["bash", "-c", script],
            env=self.env,
            cwd=self.folder,
            user=self.user if block.runs == "server" else None,
            stdin=subprocess.DEVNULL,
            stdout=(out := (self.folder / "out").open("w+b")),
            stderr=subprocess.STDOUT,
            timeout=600,
            check=False,
        )
        out.seek(0)
        printed = out.read().decode(errors="replace")
        out.close()
        where = f"{PAGE.name}:{block.line}"
        assert done.returncode == 0, f"{where}:\n{block.text}\nprinted:\n{printed}"
        said = kept.read_text().split("\0")
        kept.unlink()
        self.env = dict(one.split("=", 1) for one in said if "=" in one)
        return printed

    def _begin(self, block: Block) -> None:
        with (self.folder / "background").open("ab") as out:
            self.running.append(
                subprocess.Popen(
                    ["bash", "-c", f"exec {block.text}"],
                    env=self.env,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                )
            )

    def close(self) -> None:
        """Leave nothing running and nothing behind."""
        for one in self.running:
            one.kill()
            one.wait()
        restored = self.folder / "backup" / "restored"
        if (restored / "postmaster.pid").exists():
            self.cluster.run("pg_ctl", "-D", str(restored), "-m", "immediate", "-w", "stop")
        bouncer = self.folder / "backup" / "pgbouncer.pid"
        if bouncer.exists():
            os.kill(int(bouncer.read_text()), 9)
        shutil.rmtree(self.folder, ignore_errors=True)
