"""Copies of this repository, for tests that change it or build it."""

import shutil
import subprocess
from pathlib import Path

import pytest
from project_paths import ROOT


def copy_of_tree(folder: Path) -> Path:
    """What a commit of everything would hold, in another folder."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder
