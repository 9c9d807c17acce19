"""The peers we are measured beside: each in an environment and a process of its own."""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.environment import ROOT, python_of, surroundings
from benchmarks.sessions import live, session

PEERS = ("harness", "langchain")
AT_MOST = 900
"""Seconds for one peer and one size: each of its measurements gives up long before."""


def measure(sizes: Sequence[int], *, quick: bool) -> list[dict[str, Any]]:
    """A row for each peer, way of calling it and size; "seconds" is None where it took too long.

    A row's "request" is "first" for a whole session that was never compacted, and "next" for the
    request after that, with one more turn. "changed" tells whether the peer did more than check.
    """
    pythons = {peer: python_of(peer) for peer in PEERS}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="refold-peers-") as folder:
        for size in sizes:
            path = Path(folder) / f"{size}.json"
            path.write_bytes(b"[%b]" % b",\n".join([*session(size), *live(size)]))
            for peer, python in pythons.items():
                rows += _rows(peer, python, path, size, seconds=0.3 if quick else 2.0)
            path.unlink()
    return rows


def _rows(peer: str, python: Path, path: Path, size: int, seconds: float) -> list[dict[str, Any]]:
    # -P: its own folder is no place to import from; there, a file of ours has LangChain's name.
    command = [str(python), "-P", "-m", f"benchmarks.peers.{peer}"]
    done = subprocess.run(  # noqa: S603 - our script, by the peer's Python
        [*command, str(path), str(size), str(seconds)],
        env=surroundings(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
        timeout=AT_MOST,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{peer} could not be measured:\n{done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]
