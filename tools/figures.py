"""The published figures: what context policies cost and keep, on recorded sessions.

python tools/figures.py fetch FOLDER              the recordings that docs/data.toml lists
python tools/figures.py verify DATA               check that a copy of them has the listed hashes
python tools/figures.py measure DATA [--policy X] replay them, into docs/figures.csv, and publish
python tools/figures.py publish [--check]         docs/figures.csv into the pages and the picture

The recordings are not part of the project. `measure` reads no file whose hash is not the listed
one. With --policy it replays only these, and what the file lacks: `--policy none` continues a run
that was interrupted.
"""

import argparse
import csv
import gzip
import re
import statistics
import sys
import tempfile
import tomllib
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from reference import table

from refold.lab.charts import STYLE, Point, scatter
from refold.lab.economics import FOLD
from refold.lab.measure import EVERYTHING, Job, Outcome, each_measured, jobs_for
from refold.lab.metrics import DEFAULT_PRICES, bootstrapped
from refold.lab.policies import MORE, SKI_RENTAL, TWICE
from refold.lab.report import Case, CaseOptions, case_of
from refold.lab.session_files import recordings
from refold.view.profiles import PROFILES

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "docs" / "data.toml"
MEASURED = ROOT / "docs" / "figures.csv"
PICTURE = ROOT / "docs" / "pictures" / "cost-and-names.svg"
WINDOW = 200_000

LABELS = {
    EVERYTHING: "everything",
    "balanced": "**Refold, profile `balanced`** (the default)",
    "copilot": "Refold, profile `copilot`",
    "cowagent": "Refold, profile `cowagent`",
    "inkeep": "Refold, profile `inkeep`",
    "co-cli": "Refold, profile `co-cli`",
    "sliding window, pair-safe": "the newest messages that fit, calls kept with their results",
    "mask, batched": "old tool results out, when the context is full",
    "head and tail only": "head and tail only",
    "head / ledger / tail": "head and tail, a list of names between",
    TWICE: f"the same at {2 * FOLD:,} tokens, folded to {FOLD:,}",
    MORE: f"the same at {5 * FOLD // 2:,} tokens",
    SKI_RENTAL: "the same by ski rental",
}
"""The policies, in the order of the tables."""
POINTS = {
    EVERYTHING: "everything",
    "balanced": "Refold (balanced)",
    "sliding window, pair-safe": "newest messages that fit",
    "mask, batched": "old tool results out",
    "head and tail only": "head and tail only",
    "head / ledger / tail": "head and tail + names",
    TWICE: "the same, folding early",
}
"""The policies that the picture shows."""
COUNTS = (
    *("requests", "sent", "cached", "largest", "refused"),
    *("names", "of_names", "other", "of_other", "edits", "of_edits", "lines", "of_lines"),
)
COSTS = ("cost", "bound", "timing", "all_in")
HEADINGS = ("session", "set", "policy", *COSTS, *COUNTS)


class Recording(NamedTuple):
    """A file of docs/data.toml."""

    name: str
    repository: str
    commit: str
    path: str
    license: str
    sha256: str

    @property
    def address(self) -> str:
        return f"https://raw.githubusercontent.com/{self.repository}/{self.commit}/{self.path}"


def sources() -> list[Recording]:
    """All files that the figures are measured on."""
    listed = tomllib.loads(SOURCES.read_text(encoding="utf-8"))["source"]
    return [
        Recording(
            file["name"],
            source["repository"],
            source["commit"],
            file["path"],
            source["license"],
            file["sha256"],
        )
        for source in listed
        for file in source["files"]
    ]


def fetch(folder: Path) -> None:
    """Download what is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in sources():
        if not (folder / source.name).exists():
            print(f"{source.name}: {source.address}", file=sys.stderr)
            try:
                with urllib.request.urlopen(source.address) as answer:  # noqa: S310 - always https
                    content = answer.read()
            except OSError as error:
                raise SystemExit(
                    f"{source.address} can't be downloaded: {error}\n"
                    "Try again, or name a folder that has the recordings: make figures DATA=FOLDER"
                ) from error
            _checked(source, content)
            (folder / source.name).write_bytes(content)


def verify(data: Path) -> str:
    """That a folder has all recordings, each with its hash."""
    listed = sources()
    size = sum(len(content_of(source, data)) for source in listed)
    return f"{len(listed)} recordings, {size:,} bytes: each has the SHA-256 of docs/data.toml."


def content_of(source: Recording, data: Path) -> bytes:
    """A recording as docs/data.toml lists it, from a folder that may hold it compressed."""
    for place in (data, data / "sessions"):
        if (file := place / source.name).exists():
            return _checked(source, file.read_bytes())
        if (file := place / f"{source.name}.gz").exists():
            return _checked(source, gzip.decompress(file.read_bytes()))
    raise SystemExit(f"{data} has no {source.name}. Fetch it: python tools/figures.py fetch {data}")


def _checked(source: Recording, content: bytes) -> bytes:
    if sha256(content).hexdigest() != source.sha256:
        raise SystemExit(f"{source.name} is not the file of docs/data.toml: its SHA-256 differs.")
    return content


def set_of(name: str) -> str:
    """What a session is used for, by its name alone, so that a new one moves none."""
    if name.startswith("pi_"):
        return "pi"
    return "tune" if sha256(name.encode()).digest()[0] % 2 else "held out"


@dataclass(frozen=True, slots=True)
class Measured:
    """One policy on one session."""

    session: str
    set: str
    policy: str
    values: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values[name]


def measure(data: Path, policies: Sequence[str]) -> None:
    """Replay the sessions under these policies, and whatever docs/figures.csv lacks.

    Saved after each replay.
    """
    found = [row for row in rows() if row.policy not in policies]
    there = {(row.session, row.policy) for row in found}
    with tempfile.TemporaryDirectory() as folder:
        files: list[Path] = []
        for source in sources():
            files.append(Path(folder, source.name))
            files[-1].write_bytes(content_of(source, data))
        read = [file.recordings[0] for file in recordings(files)]
    read.sort(key=lambda one: sha256(one.name.encode()).digest())  # a part of them is a fair sample
    cases = [case_of(one, CaseOptions(WINDOW, None, DEFAULT_PRICES)) for one in read]
    jobs: list[Job] = []
    for session, case in enumerate(cases):
        lacks = [name for name in LABELS if (case.recording.name, name) not in there]
        profiles = [PROFILES[name] for name in lacks if name in PROFILES]
        rules = [name for name in lacks if name not in PROFILES]
        jobs += [
            replace(job, session=session)
            for job in jobs_for([case], profiles, rules)
            if job.policies
        ]
    for done, (job, outcomes) in enumerate(each_measured(jobs), 1):
        print(f"{done} of {len(jobs)}: {job.case.recording.name}", file=sys.stderr)
        found += [_measured(cases[one.session], one) for one in outcomes]
        save(found)


def _measured(case: Case, outcome: Outcome) -> Measured:
    name, row = case.recording.name, outcome.row
    if row is None:
        raise SystemExit(f"{name}, {outcome.policy}: {outcome.error}")
    kept = {"names": row.retained, "other": row.other_names, "edits": row.edits, "lines": row.lines}
    values: dict[str, float] = {
        "cost": row.cost,
        "bound": row.account.bound,
        "timing": row.account.timing,
        "all_in": row.account.all_in,
        "requests": row.requests,
        "sent": row.sent,
        "cached": row.cached,
        "largest": row.peak,
        "refused": outcome.refused,
        **{name: share.found for name, share in kept.items()},
        **{f"of_{name}": share.of for name, share in kept.items()},
    }
    return Measured(name, set_of(name), outcome.policy, values)


def save(measured: Sequence[Measured]) -> None:
    """Write docs/figures.csv."""
    with MEASURED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADINGS)
        order = [*LABELS]
        for row in sorted(measured, key=lambda row: (row.session, order.index(row.policy))):
            costs = [f"{row[name]:.6g}" for name in COSTS]
            counts = [f"{row[name]:.0f}" for name in COUNTS]
            writer.writerow([row.session, row.set, row.policy, *costs, *counts])


def rows() -> list[Measured]:
    """What docs/figures.csv holds."""
    if not MEASURED.exists():
        return []
    with MEASURED.open(encoding="utf-8", newline="") as file:
        return [
            Measured(
                row["session"],
                row["set"],
                row["policy"],
                {name: float(row[name]) for name in (*COSTS, *COUNTS)},
            )
            for row in csv.DictReader(file)
        ]


class Sessions:
    """The measured rows of some sessions, and what pages say of them."""

    def __init__(self, measured: Sequence[Measured]) -> None:
        self._rows: dict[str, list[Measured]] = {name: [] for name in LABELS}
        for row in measured:
            self._rows[row.policy].append(row)
        self._everything = {row.session: row["cost"] for row in self._rows[EVERYTHING]}

    def __len__(self) -> int:
        return len(self._everything)

    def shares(self, policy: str) -> list[float]:
        """What each session cost, of what sending everything costs."""
        return [part / whole for part, whole in self._costs(policy)]

    def cost(self, policy: str) -> tuple[float, float, float]:
        """What they cost together, with its 95 % interval."""
        return _ratio(self._costs(policy))

    def kept(self, policy: str, of: str = "names") -> tuple[float, float, float]:
        """What the model was still shown when it used it again, with its 95 % interval."""
        return _ratio([(row[of], row[f"of_{of}"]) for row in self._rows[policy]])

    def to_bound(self, policy: str, of: str) -> tuple[float, float, float]:
        """A cost as a ratio to the bound, with its 95 % interval."""
        return _ratio([(row[of], row["bound"]) for row in self._rows[policy]])

    def worst(self, policy: str, of: str) -> float:
        """The same, of the worst session."""
        return max(row[of] / row["bound"] for row in self._rows[policy] if row["bound"])

    def total(self, policy: str, of: str) -> float:
        """The sum over all sessions."""
        return sum(row[of] for row in self._rows[policy])

    def largest(self, policy: str) -> float:
        """The largest request."""
        return max(row["largest"] for row in self._rows[policy])

    def _costs(self, policy: str) -> list[tuple[float, float]]:
        return [(row["cost"], self._everything[row.session]) for row in self._rows[policy]]


def _ratio(parts: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    whole = sum(of for _, of in parts)
    return (sum(part for part, _ in parts) / whole if whole else 1.0, *bootstrapped(parts))


def sets(measured: Sequence[Measured]) -> dict[str, Sessions]:
    """All sessions that every policy was replayed on, those of each set, and those that fit."""
    played = {name: {row.session for row in measured if row.policy == name} for name in LABELS}
    whole = set.intersection(*played.values())
    mine = [row for row in measured if row.session in whole]
    refused = {row.session for row in mine if row.policy == EVERYTHING and row["refused"]}
    return {
        "all": Sessions(mine),
        "fits": Sessions([row for row in mine if row.session not in refused]),
        **{
            name: Sessions([row for row in mine if row.set == name])
            for name in ("held out", "tune", "pi")
        },
    }


_PHRASES: dict[str, Callable[[Sessions, str], str]] = {
    "cost": lambda on, policy: f"{on.cost(policy)[0]:.0%}",
    "cost range": lambda on, policy: _range(on.cost(policy)),
    "names": lambda on, policy: f"{on.kept(policy)[0]:.0%}",
    "names range": lambda on, policy: _range(on.kept(policy)),
    "other": lambda on, policy: f"{on.kept(policy, 'other')[0]:.0%}",
    "edits": lambda on, policy: f"{on.kept(policy, 'edits')[0]:.0%}",
    "lines": lambda on, policy: f"{on.kept(policy, 'lines')[0]:.0%}",
    "median": lambda on, policy: f"{statistics.median(on.shares(policy)):.0%}",
    "worst": lambda on, policy: f"{max(on.shares(policy)):.0%}",
    "dearer": lambda on, policy: str(sum(one > 1.001 for one in on.shares(policy))),  # noqa: PLR2004
    "cached": lambda on, policy: f"{on.total(policy, 'cached') / on.total(policy, 'sent'):.1%}",
    "sent": lambda on, policy: f"{on.total(policy, 'sent') / on.total(EVERYTHING, 'sent'):.0%}",
    "refused": lambda on, policy: f"{on.total(policy, 'refused'):,.0f}",
    "requests": lambda on, policy: f"{on.total(policy, 'requests'):,.0f}",
    "of names": lambda on, policy: f"{on.total(policy, 'of_names'):,.0f}",
    "of edits": lambda on, policy: f"{on.total(policy, 'of_edits'):,.0f}",
    "of lines": lambda on, policy: f"{on.total(policy, 'of_lines'):,.0f}",
    "timing": lambda on, policy: f"{on.to_bound(policy, 'timing')[0]:.2f}",
    "worst timing": lambda on, policy: f"{on.worst(policy, 'timing'):.2f}",
    "all in": lambda on, policy: f"{on.to_bound(policy, 'all_in')[0]:.2f}",
    "largest": lambda on, policy: f"{on.largest(policy):,.0f}",
    "sessions": lambda on, _: str(len(on)),
}
"""What a page can quote as `<!-- figure: POLICY, NAME -->…<!-- / -->`, also with `, SET`."""
_QUOTED = re.compile(r"<!-- figure: ([^>]+?) -->.*?<!-- / -->", re.DOTALL)
_TABLE = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def published(page: str, on: Mapping[str, Sessions]) -> str:
    """The page with the figures that it quotes, and its tables of them."""

    def quoted(found: re.Match[str]) -> str:
        policy = next(one for one in LABELS if found[1].startswith(f"{one},"))
        name, *rest = [word.strip() for word in found[1].removeprefix(f"{policy},").split(",")]
        phrase = _PHRASES[name](on[rest[0] if rest else "all"], policy)
        return f"<!-- figure: {found[1]} -->{phrase}<!-- / -->"

    def tabled(found: re.Match[str]) -> str:
        lines = "\n".join(_TABLES[found[2]](on["all"]))
        return f"{found[1]}\n{lines}\n{found[3]}"

    return _TABLE.sub(tabled, _QUOTED.sub(quoted, page))


def _range(share: tuple[float, float, float]) -> str:
    return f"{share[1]:.0%} to {share[2]:.0%}"


def _with_range(share: tuple[float, float, float]) -> str:
    return f"{share[0]:.0%} ({share[1] * 100:.0f} to {share[2] * 100:.0f})"


def _kept_and_paid(on: Sessions) -> Iterator[str]:
    head = ("what is sent", "cost", "median session", "names kept", "other names")
    head = (*head, "edits", "long lines", "from the cache", "refused", "largest request")
    yield from table(
        head,
        (
            (
                label,
                _with_range(on.cost(policy)),
                _PHRASES["median"](on, policy),
                _with_range(on.kept(policy)),
                *(_PHRASES[name](on, policy) for name in ("other", "edits", "lines", "cached")),
                *(_PHRASES[name](on, policy) for name in ("refused", "largest")),
            )
            for policy, label in LABELS.items()
        ),
    )


def _against_the_bound(on: Sessions) -> Iterator[str]:
    def to_bound(policy: str, of: str) -> str:
        pooled, low, high = on.to_bound(policy, of)
        return f"{pooled:.2f} ({low:.2f} to {high:.2f})"

    yield from table(
        ("what is sent", "timing", "worst session", "all in", "worst session"),
        (
            (
                label,
                *(
                    cell
                    for of in ("timing", "all_in")
                    for cell in (to_bound(policy, of), f"{on.worst(policy, of):.2f}")
                ),
            )
            for policy, label in LABELS.items()
        ),
    )


_TABLES = {"comparison": _kept_and_paid, "bound": _against_the_bound}


def picture(on: Sessions) -> str:
    """Cost against names kept, with 95 % intervals."""
    return scatter(
        [
            Point(label, policy in PROFILES, on.cost(policy), on.kept(policy))
            for policy, label in POINTS.items()
        ],
        f"{len(on)} recorded sessions; bars: 95% intervals",
        title=f"Cost against names kept, on {len(on)} recorded sessions",
        style=STYLE,
    )


def pages() -> list[Path]:
    """The pages that quote figures."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in every if "<!-- figure" in page.read_text(encoding="utf-8")]


def outdated(*, write: bool) -> list[Path]:
    """The files that differ from docs/figures.csv; rewritten, if asked for."""
    if not MEASURED.exists():
        raise SystemExit(f"There is no {MEASURED.relative_to(ROOT)}: make figures DATA=…")
    on = sets(rows())
    made = {page: published(page.read_text(encoding="utf-8"), on) for page in pages()}
    made[PICTURE] = picture(on["all"])
    found = [
        path
        for path, text in made.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in found if write else ():
        path.write_text(made[path], encoding="utf-8")
    return found


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    fetching = commands.add_parser("fetch", help="download the recordings")
    fetching.add_argument("folder", type=Path)
    verifying = commands.add_parser("verify", help="check a copy of the recordings")
    verifying.add_argument("data", type=Path, help="the folder that has them")
    measuring = commands.add_parser("measure", help="replay the recordings, and publish")
    measuring.add_argument("data", type=Path, help="the folder that has them")
    measuring.add_argument(
        "--policy", choices=LABELS, action="append", help="replay only this again; repeatable"
    )
    publishing = commands.add_parser("publish", help="write the figures into the pages")
    publishing.add_argument("--check", action="store_true", help="only list what is out of date")
    options = parser.parse_args()
    if options.command == "fetch":
        fetch(options.folder)
        return 0
    if options.command == "verify":
        print(verify(options.data))
        return 0
    if options.command == "measure":
        measure(options.data, options.policy or [*LABELS])
    check = options.command == "publish" and options.check
    found = outdated(write=not check)
    for path in found:
        print(f"{path.relative_to(ROOT)}: {'out of date' if check else 'written'}")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
