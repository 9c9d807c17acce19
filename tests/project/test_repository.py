"""What holds for the repository as a whole."""

import importlib
import inspect
import pkgutil
import re
import subprocess

import pytest
from project_paths import ROOT

import refold

MAKEFILE = ROOT / "Makefile"

# In pieces, so that this file does not name what it forbids. An example may live with "me".
REGISTRIES = "|".join(rf"{name}\.(?:org|io|com)" for name in ("py" + "pi", "python" + "hosted"))
HOMES = "|".join(("ro" + "ot", "ho" + "me", "Us" + "ers", "wo" + "rk", "t" + "mp"))
FORBIDDEN = re.compile(rf"{REGISTRIES}|(?<![\w.*$}}])/(?:{HOMES})/(?!me/)")


def files():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def test_no_file_names_a_registry_or_a_home():
    for file in files():
        text = file.read_bytes().decode("utf-8", errors="replace")
        found = FORBIDDEN.search(text)
        assert not found, f"{file}: {found}"


def test_there_is_no_lock_file_with_addresses():
    assert not [file for file in files() if file.name in {"uv.lock", "poetry.lock"}]


def test_every_pin_has_a_hash_and_no_address():
    for file in ROOT.glob("requirements/*.txt"):
        text = file.read_text(encoding="utf-8")
        pins = re.findall(r"^\w.*==.*(?:\n    --hash=sha256:\w+.*)+", text, re.MULTILINE)
        assert len(pins) == len(re.findall(r"^\w", text, re.MULTILINE)) > 0
        assert not re.search(r"://|--(?!hash=)", text)


def test_every_make_target_has_a_help_line():
    text = MAKEFILE.read_text(encoding="utf-8")
    targets = re.findall(r"^([\w-]+):(?!=)(.*)$", text, re.MULTILINE)
    assert {name for name, _ in targets} >= {"setup", "check", "test"}
    assert [name for name, rest in targets if " ## " not in rest] == []


def public_modules():
    """Every public package, and the modules directly in `refold`."""
    yield "refold"
    for found in pkgutil.walk_packages(refold.__path__, "refold."):
        private = any(part.startswith("_") for part in found.name.split("."))
        if not private and (found.ispkg or found.name.count(".") == 1):
            yield found.name


def in_ruff_order(name: str):
    """Constants, then classes, then the rest: ruff's rule RUF022."""
    return not name.isupper(), not name[:1].isupper(), name


@pytest.mark.parametrize("name", list(public_modules()))
def test_all_is_sorted_and_complete(name):
    module = importlib.import_module(name)
    declared = getattr(module, "__all__", [])
    assert declared == sorted(declared, key=in_ruff_order)
    assert [each for each in declared if not hasattr(module, each)] == []
    ours = {
        each
        for each, value in vars(module).items()
        if not each.startswith("_")
        and not inspect.ismodule(value)
        and str(getattr(value, "__module__", "")).startswith("refold")
    }
    assert ours <= set(declared), "public, but not in __all__"
