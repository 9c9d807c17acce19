"""What must hold after chaos, whatever was killed when: of the log, and of what the workers did."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from chaos_journal import CALLING, MAKING, Line

from refold.log import CODEC, Entry, FoldCompleted, FoldFailed, FoldStarted, FoldStepped
from refold.log.entry import intersect

Interval = tuple[float, float, str]
"""When somebody made a fold: from, to, and who."""
NEVER = float("inf")


def objections_to_log(entries: Sequence[Entry]) -> Iterator[str]:
    """What is wrong with the folds of one session in which none is folded again."""
    yield from objections_to_ends(entries)
    values = [CODEC.decode(entry) for entry in entries]
    spans = [span for v in values if isinstance(v, FoldCompleted) for span in v.spans]
    for at, span in enumerate(spans):
        if intersect([span], spans[at + 1 :]):
            yield f"two folds stand for {span}"


def objections_to_ends(entries: Sequence[Entry]) -> Iterator[str]:
    """Folds of a session that have not begun once, and ended once."""
    values = [CODEC.decode(entry) for entry in entries]
    started = [value.fold for value in values if isinstance(value, FoldStarted)]
    ended = Counter(v.fold for v in values if isinstance(v, FoldCompleted | FoldFailed))
    completed = Counter(v.fold for v in values if isinstance(v, FoldCompleted))
    yield from (f"fold {fold} began twice" for fold, n in Counter(started).items() if n > 1)
    yield from (f"fold {fold} has {ended[fold]} ends" for fold in started if ended[fold] != 1)
    yield from (f"fold {fold} was installed {n} times" for fold, n in completed.items() if n > 1)
    yield from (f"fold {fold} ended and never began" for fold in ended if fold not in started)


def objections_to_calls(lines: Iterable[Line], entries: Iterable[Entry]) -> Iterator[str]:
    """Calls of a model whose answer the log had already."""
    called: dict[tuple[str, str], float] = {}
    for line in lines:
        if (line.what, line.kind) == ("begin", CALLING):
            called[line.fold, line.step] = line.at
    recorded: set[tuple[str, str]] = set()
    for entry in entries:
        match CODEC.decode(entry):
            case FoldStepped(fold, name):
                key = str(fold), name
                if key in recorded:
                    yield f"step {name!r} of fold {fold} was recorded twice"
                recorded.add(key)
                # An entry's time is told in whole milliseconds.
                if called.get(key, NEVER) > entry.at / 1000 + 0.001:
                    yield f"step {name!r} of fold {fold} was called again, or by nobody"
            case _:
                pass


def intervals(lines: Iterable[Line]) -> dict[str, list[Interval]]:
    """Who made each fold, and when; who was killed made it until then."""
    found: dict[str, list[Interval]] = defaultdict(list)
    open_: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in lines:
        if line.what == "gone":
            for fold, worker in [key for key in open_ if key[1] == line.worker]:
                begun = open_.pop((fold, worker))
                found[fold] += [(one, line.at, worker) for one in begun]
        elif line.kind == MAKING and line.what == "begin":
            open_[line.fold, line.worker].append(line.at)
        elif line.kind == MAKING:
            began = open_[line.fold, line.worker].pop(0)  # one may make the same twice at once
            found[line.fold].append((began, line.at, line.worker))
    for (fold, worker), begun in open_.items():
        found[fold] += [(one, NEVER, worker) for one in begun]
    return found


def objections_to_workers(lines: Iterable[Line]) -> Iterator[str]:
    """Folds that two made at once."""
    for fold, made in intervals(lines).items():
        for (_, until, one), (began, _, other) in zip(sorted(made), sorted(made)[1:], strict=False):
            if began < until:
                yield f"fold {fold} was made by {one} and {other} at once"
