"""A virtual environment for each peer, made when it is missing or its pins have changed."""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".ci" / "build" / "peers"


def python_of(peer: str, cache: Path = CACHE) -> Path:
    """The Python that has the peer installed, as `requirements/peers-<peer>.txt` pins it."""
    pins = ROOT / "requirements" / f"peers-{peer}.txt"
    folder = cache / peer
    python = folder / "bin" / "python"
    stamp = folder / "made-from"
    wanted = f"{sys.version}\n{hashlib.sha256(pins.read_bytes()).hexdigest()}\n"
    if python.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    _install(python, pins)
    # Last, so that an environment half made is made again.
    stamp.write_text(wanted, encoding="utf-8")
    return python


def surroundings(**more: str) -> dict[str, str]:
    """The environment variables for a peer's Python: none that lead it to our packages."""
    ours = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    return {name: value for name, value in os.environ.items() if name not in ours} | more


def _install(python: Path, pins: Path) -> None:
    what = ["--quiet", "--require-hashes", "-r", str(pins)]
    uv = Path(sys.executable).parent / "uv"
    if uv.exists():
        done = _run([str(uv), "pip", "install", "--python", str(python), *what])
        if done.returncode == 0:
            return
        # pip is slower, but it reads the settings of machines that have a mirror.
        print(f"uv could not install {pins.name}, so pip tries", file=sys.stderr)
    done = _run([str(python), "-m", "pip", "install", "--disable-pip-version-check", *what])
    if done.returncode != 0:
        raise RuntimeError(f"{pins.name} could not be installed:\n{done.stderr.strip()}")


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - uv or pip, of our own environments
        command, env=surroundings(), capture_output=True, text=True, check=False
    )
