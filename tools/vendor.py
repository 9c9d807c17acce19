"""The scripts that the console serves and others wrote: pinned, unchanged, with their licenses.

    python tools/vendor.py           check that each file is the one that vendored.toml names
    python tools/vendor.py --fetch   take them from npm, and check the packages' integrity first

Nothing is built, and pages load nothing from other sites. `--fetch` needs npm, which asks whichever
registry it is set up for; the integrity in vendored.toml says what that may answer.
"""

import argparse
import base64
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from hashlib import sha256, sha512
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
PINS: Final = Path(__file__).with_name("vendored.toml")
_NO_HASH: Final = 'sha256 = ""'


class File(NamedTuple):
    """A file of a package, and where it is kept."""

    inside: str
    path: Path
    sha256: str


class Package(NamedTuple):
    """A package of npm, as it is pinned."""

    name: str
    version: str
    integrity: str
    license: str
    files: tuple[File, ...]


def packages(pins: Path = PINS, root: Path = ROOT) -> list[Package]:
    """What is pinned."""
    return [
        Package(
            name,
            about["version"],
            about["integrity"],
            about["license"],
            tuple(File(each["from"], root / each["to"], each["sha256"]) for each in about["files"]),
        )
        for name, about in tomllib.loads(pins.read_text(encoding="utf-8")).items()
    ]


def problems(pinned: list[Package]) -> Iterator[str]:
    """What is not as it is pinned, one sentence each."""
    for package in pinned:
        for file in package.files:
            where = file.path.relative_to(ROOT) if file.path.is_relative_to(ROOT) else file.path
            if not file.path.is_file():
                yield f"{where} is not there: run python tools/vendor.py --fetch."
            elif sha256(file.path.read_bytes()).hexdigest() != file.sha256:
                yield f"{where} is not the file of {package.name} {package.version} that is pinned."


def fetch(package: Package, pins: Path = PINS) -> None:
    """Take a package's files from npm, and write down the hashes of those that have none yet."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = f"{package.name}@{package.version}"
        command = ["npm", "pack", "--silent", "--pack-destination", folder, wanted]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)  # noqa: S603 - what is pinned
        (packed,) = Path(folder).glob("*.tgz")
        integrity = f"sha512-{base64.b64encode(sha512(packed.read_bytes()).digest()).decode()}"
        if integrity != package.integrity:
            raise SystemExit(f"{wanted} has the integrity {integrity}, not the one that is pinned.")
        with tarfile.open(packed) as opened:
            for file in package.files:
                member = opened.extractfile(f"package/{file.inside}")
                if member is None:
                    raise SystemExit(f"{wanted} has no file {file.inside}.")
                data = member.read()
                found = sha256(data).hexdigest()
                if file.sha256 not in ("", found):
                    raise SystemExit(f"{file.inside} of {wanted} is not the one that is pinned.")
                file.path.parent.mkdir(parents=True, exist_ok=True)
                file.path.write_bytes(data)
                _pin(pins, file, found)


def _pin(pins: Path, file: File, found: str) -> None:
    place = f'to = "{file.path.relative_to(ROOT).as_posix()}"\n'
    text = pins.read_text(encoding="utf-8")
    pins.write_text(text.replace(place + _NO_HASH, f'{place}sha256 = "{found}"'), encoding="utf-8")


def main() -> int:
    """Check, or fetch and check."""
    parser = argparse.ArgumentParser(description="Check what others wrote.")
    parser.add_argument("--fetch", action="store_true", help="take the files from npm")
    if parser.parse_args().fetch:
        for package in packages():
            fetch(package)
    wrong = list(problems(packages()))
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
