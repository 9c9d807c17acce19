"""Says what is wrong with a built wheel and its sdist: `python tools/artifacts.py FOLDER`.

The wheel holds the package, whole, and nothing else; the sdist holds what the checks need; both say
of themselves what pyproject.toml says. With nothing to say it exits with 0.
"""

import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
MADE = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
"""What a wheel holds besides the package."""
ADDED = {"PKG-INFO", ".gitignore"}
"""What a build puts into every sdist by itself."""
PASSING = {"__pycache__", "build", "_build", ".hypothesis", ".pytest_cache", ".ruff_cache"}
"""Folders of what can be made again, as .gitignore has them."""
LEFT = {".db", ".db-shm", ".db-wal", ".egg-info"}


class Artifacts(NamedTuple):
    """One wheel and one sdist."""

    wheel: Path
    sdist: Path


def found(folder: Path) -> Artifacts:
    """The wheel and the sdist in a folder."""
    wheels, sdists = list(folder.glob("*.whl")), list(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        raise SystemExit(f"{folder} holds {len(wheels)} wheels and {len(sdists)} sdists, not one.")
    return Artifacts(wheels[0], sdists[0])


def problems(artifacts: Artifacts, root: Path = ROOT) -> Iterator[str]:
    """What is wrong, one sentence each."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    yield from _of_wheel(artifacts.wheel, root, project["project"])
    yield from _of_sdist(artifacts.sdist, root, project)


def _of_wheel(wheel: Path, root: Path, project: dict[str, Any]) -> Iterator[str]:
    about = f"refold-{project['version']}.dist-info"
    if wheel.name != f"refold-{project['version']}-py3-none-any.whl":
        yield f"The wheel is called {wheel.name}."
    with zipfile.ZipFile(wheel) as opened:
        held = set(opened.namelist())
        if f"{about}/METADATA" in held:
            said = Parser().parsestr(opened.read(f"{about}/METADATA").decode())
            yield from _of_metadata(said, root, project)
    wanted = {f"refold/{name}" for name in _files(root / "src" / "refold")}
    yield from _differing("wheel", held, wanted | {f"{about}/{name}" for name in MADE})


def _of_sdist(sdist: Path, root: Path, project: dict[str, Any]) -> Iterator[str]:
    first = f"refold-{project['project']['version']}/"
    if sdist.name != f"{first[:-1]}.tar.gz":
        yield f"The sdist is called {sdist.name}."
    with tarfile.open(sdist) as opened:
        held = {one.name.removeprefix(first) for one in opened.getmembers() if one.isfile()}
    wanted = {"pyproject.toml", "README.md", project["project"]["readme"], "LICENSE"} | ADDED
    for name in project["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]:
        inside = root / name
        wanted |= {f"{name}/{one}" for one in _files(inside)} if inside.is_dir() else {name}
    yield from _differing("sdist", held, wanted)


def _differing(what: str, held: set[str], wanted: set[str]) -> Iterator[str]:
    for name in sorted(wanted - held):
        yield f"The {what} lacks {name}."
    for name in sorted(held - wanted):
        yield f"The {what} holds {name}, which does not belong there."


def _files(folder: Path) -> Iterator[str]:
    """The files beneath a folder, without what running or building left there."""
    for file in folder.rglob("*"):
        inside = file.relative_to(folder)
        left = any(Path(part).suffix in LEFT for part in inside.parts)
        if file.is_file() and not left and not PASSING & set(inside.parts):
            yield inside.as_posix()


def _of_metadata(said: Message, root: Path, project: dict[str, Any]) -> Iterator[str]:
    needs = said.get_all("Requires-Dist", [])
    plain = [need for need in needs if "extra ==" not in need]
    if [need.split(">")[0] for need in plain] != ["pydantic"]:
        yield f"Without an extra the wheel needs {plain}, not pydantic alone."
    if set(said.get_all("Provides-Extra", [])) != set(project["optional-dependencies"]):
        yield "The extras are not those of pyproject.toml."
    if said.get_all("Classifier") != project["classifiers"]:
        yield "The classifiers are not those of pyproject.toml."
    if (said["Version"], said["License-Expression"]) != (project["version"], project["license"]):
        yield "The version or the licence is not that of pyproject.toml."
    if said["Description-Content-Type"] != "text/markdown":
        yield "The description is not said to be Markdown, so a registry shows it as plain text."
    if said.get_payload() != (root / project["readme"]).read_text(encoding="utf-8"):
        yield f"The description is not {project['readme']}."


def main() -> int:
    """Print what is wrong with the artifacts in a folder."""
    wrong = list(problems(found(Path(sys.argv[1]))))
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
