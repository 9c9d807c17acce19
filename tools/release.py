"""Makes a version: `python tools/release.py 1.2.3`, or `make release VERSION=1.2.3`.

It checks that the tree is clean and the CHANGELOG tells of the version, sets the version in
pyproject.toml, builds, checks what was built, commits and tags. It sends nothing anywhere: it
prints what to do next. Where something is wrong, it says so and leaves all as it was.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from artifacts import found, problems

ROOT = Path(__file__).parent.parent
PROJECT = ROOT / "pyproject.toml"
CHANGELOG = ROOT / "CHANGELOG.md"
PASSED = ROOT / ".ci" / "build" / "passed"
"""Where `make check` writes the commit that it passed on."""
VERSION = re.compile(r'^version = "(.+)"$', re.MULTILINE)


class Refused(Exception):
    """The version is not made, and nothing was changed."""


def git(*words: str) -> str:
    """What git answers."""
    done = subprocess.run(  # noqa: S603 - our own words
        ["git", *words],  # noqa: S607 - found as the shell finds it
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Refused(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def check(version: str) -> str:
    """Refuse what cannot be a version yet; what the CHANGELOG tells of it."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise Refused("Name the version: make release VERSION=1.2.3")
    if _order(version) < _order(_current()):
        raise Refused(f"{version} is older than {_current()}, which the tree has.")
    if git("tag", "--list", f"v{version}"):
        raise Refused(f"There is a tag v{version} already.")
    if changed := git("status", "--porcelain"):
        raise Refused(f"The tree is not clean. Commit or remove:\n{changed}")
    told = _told(version)
    if not re.search(r"^- \S", told, re.MULTILINE):
        raise Refused(f"CHANGELOG.md has no section '## {version}' with a line in it.")
    return told


def _order(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _current() -> str:
    return VERSION.findall(PROJECT.read_text(encoding="utf-8"))[0]


def _told(version: str) -> str:
    """The section of the CHANGELOG about a version."""
    text = CHANGELOG.read_text(encoding="utf-8")
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, told = section.partition("\n")
        if re.fullmatch(rf"{re.escape(version)}(?: .*)?", title):
            return told.strip()
    return ""


def build(version: str) -> Path:
    """The folder with the wheel and the sdist, both checked."""
    out = ROOT / "dist" / version
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode != 0:
        raise Refused(f"It does not build:\n{done.stdout}{done.stderr}")
    if wrong := list(problems(found(out), ROOT)):
        raise Refused("What was built is not right:\n" + "\n".join(wrong))
    return out


def release(version: str) -> Path:
    """Make the version; the folder with what was built."""
    told = check(version)
    before = PROJECT.read_text(encoding="utf-8")
    PROJECT.write_text(VERSION.sub(f'version = "{version}"', before, count=1), encoding="utf-8")
    try:
        out = build(version)
        if git("status", "--porcelain"):
            git("commit", "--quiet", "-m", f"Version {version}", "--", PROJECT.name)
    except BaseException:
        PROJECT.write_text(before, encoding="utf-8")
        raise
    git("tag", "-a", f"v{version}", "-m", f"Version {version}\n\n{told}", "--cleanup=verbatim")
    return out


def passed() -> str:
    """Whether `make check` passed here on what is about to be a version."""
    on = PASSED.read_text(encoding="utf-8").strip() if PASSED.exists() else ""
    if on == git("rev-parse", "HEAD"):
        return "`make check` passed on this commit."
    return "`make check` has not passed here on this commit: see that it does before you go on."


def main() -> int:
    """Make the version that is named, and say what comes next."""
    version = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        state = passed()
        out = release(version)
    except Refused as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Version {version} is committed, tagged v{version} and built. {state}")
    print("Nothing was sent anywhere. Next:")
    print("  make setup                       so that your checkout knows its version")
    print("  make audit                       no dependency may have a known vulnerability")
    print(f"  git push --follow-tags           the commit and the tag v{version}")
    print(f"  {out.relative_to(ROOT)}/*        to be uploaded, both files, by whoever may")
    return 0


if __name__ == "__main__":
    sys.exit(main())
