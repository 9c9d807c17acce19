"""Follows a README to the letter, as a reader does who has installed what it says.

python tools/follow_readme.py [--page README.md] [--extras] BIN

BIN is the folder of an environment's programs. In an empty folder, and with an empty home:

- a ```python block that begins with `# name.py` is saved under that name;
- a ```console block is typed into a shell, one command after the other, and what each prints is
  compared: `…` stands for any text, and on a line of its own for any lines;
- a command that ends with `&` goes on; what it is expected to print is waited for;
- beside a README that is not the project's, the other files of its folder are there too.

Blocks of `pip install` are not typed: --extras prints the extras that they name, for whoever
installs. A port that is taken on this machine is replaced by a free one, in all that is typed.
"""

import argparse
import os
import queue
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from page_blocks import Block, Step, as_pattern, blocks_of, steps_of, tidied

README = Path(__file__).parent.parent / "README.md"
_INSTALL = re.compile(r"pip install '?refold\[([a-z,-]+)\]")
_PORT = re.compile(r"(?:127\.0\.0\.1:|port=|--port )(\d{4,5})\b")
_FILE = re.compile(r"# (\w+\.py)\b")
_LONGEST = 300.0
"""Seconds that a command may take, or what it starts until it says what is expected."""
_ENDED = re.compile(r"\[\d+\][+-]?\s+(Done|Exit|Killed|Terminated)")
"""What a shell says of a command that it had in the background: any terminal shows it."""
_KEPT = ("LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR")


class Differs(Exception):
    """What happens is not what the page says."""


def extras_of(page: Path) -> str:
    """The extras that the page tells its reader to install first."""
    found = _INSTALL.search(page.read_text(encoding="utf-8"))
    if found is None:
        raise Differs(f"{page.name} does not say what to install")
    return found[1]


def to_follow(page: Path) -> list[Block]:
    """The blocks that a reader saves or types, in order."""
    return [one for one in blocks_of(page, marked=True) if "pip install" not in one.text]


def with_free_ports(text: str) -> dict[str, str]:
    """For each port of the text that is taken, one that is free."""
    return {port: _free() for port in dict.fromkeys(_PORT.findall(text)) if not _is_free(port)}


class Shell:
    """A shell that one command after the other is typed into."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._lines: queue.Queue[str] = queue.Queue()
        self._running = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],  # noqa: S607 - as a reader's
            cwd=folder,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._said = 0
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()
        self._type("set -m")  # as in a terminal: `kill %1` ends a command and what it started

    def run(self, step: Step) -> None:
        """Type a command, and see that it does what the page says."""
        if step.command.rstrip().endswith("&"):
            self._type(step.command)
            self._wait_for(step)
            return
        self._said += 1
        mark = f"--- {self._said} ended with"
        self._type(f"{step.command}\nended=$?; echo; echo '{mark}' $ended")
        printed = self._until(mark, step)
        before, _, status = printed.rpartition(mark)
        if not as_pattern(step.expected).fullmatch(tidied(before)) or status.strip() != "0":
            raise _differs(step, before, f"It ended with {status.strip()}.")

    def close(self) -> None:
        """End it, and all that it started."""
        self._type("kill $(jobs -p) 2>/dev/null; wait; exit")
        with suppress(subprocess.TimeoutExpired):
            self._running.wait(20)
        self._running.kill()
        self._running.wait()
        self._listening.join(20)
        for pipe in (self._running.stdin, self._running.stdout):
            with suppress(BrokenPipeError):
                pipe.close()  # pyright: ignore[reportOptionalMemberAccess] - both are pipes

    def _type(self, text: str) -> None:
        assert self._running.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(BrokenPipeError):  # then it has ended, and whoever listens is told
            self._running.stdin.write(f"{text}\n")
            self._running.stdin.flush()

    def _listen(self) -> None:
        assert self._running.stdout is not None  # noqa: S101 - it is a pipe
        for line in self._running.stdout:
            if not _ENDED.match(line):
                self._lines.put(line)
        self._lines.put("")

    def _wait_for(self, step: Step) -> None:
        for line in step.expected.strip().splitlines():
            if line.strip() != "…":
                self._until(line, step)

    def _until(self, expected: str, step: Step) -> str:
        """All that is printed up to a line that begins as expected."""
        pattern = re.compile(re.escape(expected.rstrip()).replace("…", ".*"))
        until = time.monotonic() + _LONGEST
        heard = ""
        while time.monotonic() < until:
            try:
                line = self._lines.get(timeout=0.2)
            except queue.Empty:
                continue
            if not line:
                raise _differs(step, heard, "The shell ended.")
            heard += line
            if pattern.match(line):
                return heard
        raise _differs(step, heard, f"{expected!r} did not come in {_LONGEST:.0f} s.")


def _differs(step: Step, printed: str, why: str) -> Differs:
    return Differs(
        f"$ {step.command}\n{why}\nexpected:\n{step.expected}\nprinted:\n{tidied(printed)}"
    )


def follow(blocks: Iterable[Block], programs: Path, folder: Path) -> int:
    """Do what the blocks say, in a folder, with an environment's programs; how many steps."""
    if shutil.which("curl") is None:
        raise Differs("The page uses curl, which is not installed.")
    blocks = list(blocks)
    instead = with_free_ports("\n".join(block.text for block in blocks))
    home = folder / "home"
    home.mkdir()
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    places = [str(programs), str(_stand_ins(folder)), os.environ["PATH"]]
    env |= {"HOME": str(home), "PATH": os.pathsep.join(places)}
    env |= {"PYTHONUTF8": "1", "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    env |= {"REFOLD_SERVE__PORT": instead["8790"]} if "8790" in instead else {}
    # A machine that is busy with other checks may take longer than a store may in use.
    env |= {"REFOLD_SERVE__TIMES__STORE": "30"}
    shell = Shell(folder, env)
    done = 0
    try:
        for block in blocks:
            text = _PORT.sub(lambda found: _replaced(found, instead), block.text)
            done += _follow(shell, block._replace(text=text), folder)
    finally:
        shell.close()
    return done


def _stand_ins(folder: Path) -> Path:
    """A coding agent that ends at once: a reader's needs a login. `make agents` runs real ones."""
    place = folder / "stand-ins"
    place.mkdir()
    (place / "claude").write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    (place / "claude").chmod(0o755)
    return place


def _follow(shell: Shell, block: Block, folder: Path) -> int:
    if block.language == "python":
        name = _FILE.match(block.text)
        if name is None:
            raise Differs(f"{block.page.name}:{block.line}: under which name is it to be saved?")
        (folder / name[1]).write_text(block.text, encoding="utf-8")
        return 1
    steps = [*steps_of(block)]
    for step in steps:
        began = time.monotonic()
        shell.run(step)
        print(f"    {time.monotonic() - began:4.1f} s  {step.command.splitlines()[0][:80]}")
    return len(steps)


def _replaced(found: re.Match[str], instead: Mapping[str, str]) -> str:
    port = found[1]
    return found[0].removesuffix(port) + instead.get(port, port)


def _is_free(port: str) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", int(port)))
        except OSError:
            return False
    return True


def _free() -> str:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return str(tried.getsockname()[1])


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Follow the README to the letter.")
    parser.add_argument("programs", metavar="BIN", nargs="?", type=Path)
    parser.add_argument("--page", type=Path, default=README)
    parser.add_argument("--extras", action="store_true", help="print what is to be installed")
    options = parser.parse_args()
    try:
        if options.extras or options.programs is None:
            print(extras_of(options.page))
            return 0
        with TemporaryDirectory() as folder:
            if options.page.resolve().parent != README.parent:
                shutil.copytree(options.page.parent, folder, dirs_exist_ok=True)
            done = follow(to_follow(options.page), options.programs.resolve(), Path(folder))
    except Differs as error:
        print(f"{options.page}: {error}", file=sys.stderr)
        return 1
    print(f"{options.page}: followed, {done} steps")
    return 0


if __name__ == "__main__":
    sys.exit(main())
