"""The lowest versions that we say will do are versions that were tried: `make lowest`."""

import re
import tomllib
from itertools import chain

import pytest
from tree_copies import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = chain.from_iterable(PROJECT["optional-dependencies"].values())
NEEDS = sorted({*PROJECT["dependencies"], *EXTRAS})


def tried():
    """The versions of each package in the environments of `make lowest`."""
    versions: dict[str, set[str]] = {}
    for file in ROOT.glob("requirements/lowest*.txt"):
        for name, version in re.findall(
            r"^([\w.-]+)==(\S+)", file.read_text("utf-8"), re.MULTILINE
        ):
            versions.setdefault(name, set()).add(plain(version))
    return versions


def plain(version: str) -> str:
    """A version without zeros at its end: 14.3 is 14.3.0."""
    return re.sub(r"(\.0)+$", "", version)


@pytest.mark.parametrize("need", NEEDS)
def test_a_lower_bound_is_a_version_that_was_tried(need):
    name, bound = re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\w.]+)(?:,<[^;]*)?(?:;.*)?", need).groups()
    assert plain(bound) in tried()[name]
