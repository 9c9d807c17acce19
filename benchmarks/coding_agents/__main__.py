"""Let real coding agents work through the gateway: `python -m benchmarks.coding_agents [NAME…]`.

Each agent works twice, with the same scripted model: through `refold serve`, and straight to the
provider. The table compares the two. The agents come from npm, at the versions of `package.json`.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.coding_agents.clients import CLIENTS
from benchmarks.coding_agents.differences import differences
from benchmarks.coding_agents.hooked import HOOKED, report_hooked, work_hooked
from benchmarks.coding_agents.overhead import measure_overhead, report_overhead
from benchmarks.coding_agents.recording import shortened
from benchmarks.coding_agents.run import Run, work
from benchmarks.coding_agents.wrapped import report_wrapped, work_wrapped

BUILD = Path(".ci/build/agents").resolve()
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "refold" / "agents"
"""Where npm installs them: they are large, and `.ci/build` is made anew each time."""
TURNS = (16, 16, 14)
SMALL_TURNS = (6, 6)
MIN_CALLS, MIN_FOLDS = 40, 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CLIENTS)}")
    parser.add_argument(
        "--small", action="store_true", help="a dozen calls, through the gateway only; no folds"
    )
    parser.add_argument(
        "--wrap",
        action="store_true",
        help="under refold wrap: a long task that needs a fact from before the first fold",
    )
    parser.add_argument(
        "--differences",
        action="store_true",
        help="what each agent sends with and without refold wrap",
    )
    parser.add_argument(
        "--overhead",
        action="store_true",
        help="what a request takes under refold wrap, beside one straight to the provider",
    )
    parser.add_argument(
        "--hooks",
        action="store_true",
        help="with Refold's hooks and the agent's own compaction, beside without",
    )
    parser.add_argument("--record", type=Path, help="write what each agent sent here, shortened")
    options = parser.parse_args()
    names: list[str] = options.names or [*(HOOKED if options.hooks else CLIENTS)]
    if unknown := set(names) - CLIENTS.keys():
        parser.error(f"no such agent: {', '.join(sorted(unknown))}")
    programs = install([CLIENTS[name].package for name in names])
    if options.differences:
        return print_differences(names, programs)
    held = True
    for name in names if options.wrap else ():
        folder = BUILD / "work" / f"{name}-wrapped"
        held = report_wrapped(asyncio.run(work_wrapped(CLIENTS[name], programs, folder))) and held
    for name in names if options.overhead else ():
        folder = BUILD / "work" / f"{name}-overhead"
        measured = asyncio.run(measure_overhead(CLIENTS[name], programs, folder))
        held = report_overhead(measured) and held
    for name in names if options.hooks else ():
        modes = ("none", "unread", "hooks") if name == "codex" else ("none", "hooks")
        folder = BUILD / "work" / f"{name}-hooks"
        client = CLIENTS[name]
        runs = [asyncio.run(work_hooked(client, programs, folder, mode)) for mode in modes]
        held = report_hooked(runs) and held
    for name in () if options.wrap or options.overhead or options.hooks else names:
        through = worked(name, programs, small=options.small, through_gateway=True)
        alone = None
        if not options.small:
            alone = worked(name, programs, small=False, through_gateway=False)
        held = report(through, alone) and held
        if options.record:
            options.record.mkdir(parents=True, exist_ok=True)
            file = options.record / f"{name}.json"
            file.write_text(json.dumps(shortened(through), indent=1) + "\n", encoding="utf-8")
    return 0 if held else 1


def print_differences(names: Sequence[str], programs: Path) -> int:
    """Print what each agent sends with and without `refold wrap`."""
    for name in names:
        folder = BUILD / "work" / f"{name}-differences"
        print(f"\n{name}")
        for line in asyncio.run(differences(CLIENTS[name], programs, folder)):
            print(f"  {line}")
    return 0


def worked(name: str, programs: Path, *, small: bool, through_gateway: bool) -> Run:
    """One run of an agent."""
    folder = BUILD / "work" / f"{name}-{'gateway' if through_gateway else 'alone'}"
    turns = SMALL_TURNS if small else TURNS
    return asyncio.run(
        work(CLIENTS[name], programs, folder, turns, through_gateway=through_gateway)
    )


def install(packages: Sequence[str]) -> Path:
    """Install these agents, unless they are there; the folder with their programs."""
    manifest = json.loads(Path(__file__).with_name("package.json").read_text(encoding="utf-8"))
    versions: dict[str, str] = manifest["dependencies"]
    folder = CACHE
    modules = folder / "node_modules"
    missing = [
        f"{package}@{versions[package]}"
        for package in (*packages, "node")
        if _installed(modules / package / "package.json") != versions[package]
    ]
    if missing:
        if shutil.which("npm") is None:
            sys.exit("npm is not installed, and the agents come from there: apt-get install npm")
        folder.mkdir(parents=True, exist_ok=True)
        quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        command = ["npm", "install", *quiet, "--prefix", str(folder), *missing]
        subprocess.run(command, check=True)  # noqa: S603 - the versions that the repository names
    return modules / ".bin"


def _installed(manifest: Path) -> str:
    if not manifest.exists():
        return ""
    return str(json.loads(manifest.read_text(encoding="utf-8"))["version"])


def report(through: Run, alone: Run | None) -> bool:
    """Print what came of an agent's runs; whether all bars are held."""
    bars = {
        "sessions": len(through.sessions) == 1,
        "mispaired": not through.faults,
        "errors": not through.errors,
        "calls": through.calls >= (MIN_CALLS if alone else sum(SMALL_TURNS)),
        "folds": alone is None or through.folds >= MIN_FOLDS,
    }
    print(f"\n{through.client}")
    print(f"  {'':34}{'gateway':>10}{'without':>10}")
    for label, value in rows_of(through).items():
        beside = rows_of(alone)[label] if alone else ""
        print(f"  {label:34}{value:>10}{beside:>10}")
    print(f"  {'folds':34}{through.folds:>10}")
    print(f"  {'sessions of the conversation':34}{len(through.sessions):>10}")
    print(f"  notes in its log: {dict(through.notes) or 'none'}")
    for fault in through.faults[:5]:
        print(f"  refused: {fault}")
    if alone is not None:
        ratio = through.dollars / alone.dollars
        print(f"  {'dollars beside the run without':34}{ratio:>10.2f}")
        if ratio > 1:
            explain(through, alone)
    for name, holds in bars.items():
        if not holds:
            print(f"  FAILED: {name}")
    return all(bars.values())


def rows_of(run: Run) -> dict[str, str]:
    return {
        "requests of the conversation": str(len(run.main)),
        "requests in all": str(len(run.sent)),
        "tool calls": str(run.calls),
        "requests refused by the checker": str(len(run.faults)),
        "errors": str(run.errors),
        "dollars": f"{run.dollars:.4f}",
    }


def explain(through: Run, alone: Run) -> None:
    """Where the gateway's run cost more, request by request."""
    print("  request      cached    new   dollars | without: cached    new   dollars")
    for nth, mine in enumerate(through.prices):
        other = alone.prices[nth] if nth < len(alone.prices) else None
        if other is None or mine.dollars > other.dollars:
            beside = f"{other.cached:16}{other.new:7}{other.dollars:10.5f}" if other else ""
            print(f"  {nth + 1:7}{mine.cached:12}{mine.new:7}{mine.dollars:10.5f} |{beside}")


if __name__ == "__main__":
    raise SystemExit(main())
