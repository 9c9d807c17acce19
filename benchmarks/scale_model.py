"""What many sessions need, calculated from what a few of them took. Pure arithmetic."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

Values = Mapping[str, float]
DAY: Final = 86_400
MINUTES: Final = 1_440
KINDS: Final = ("short", "long")
FREEZE_AT: Final = 200_000_000
"""Transactions after which PostgreSQL freezes old rows, unless told otherwise."""
STOPS_AT: Final = 2_100_000_000
"""Transactions after which it would stop if nothing was frozen."""


class Line(NamedTuple):
    """A figure that follows: how to get it, and in which unit it is shown."""

    text: str
    unit: str
    formula: str
    value: Callable[[Values], float]


def _mixed(what: str) -> Callable[[Values], float]:
    """The figure of an average session."""

    def value(of: Values) -> float:
        return (1 - of["long share"]) * of[f"short {what}"] + of["long share"] * of[f"long {what}"]

    return value


entries, appends, xids, folds = map(_mixed, ("entries", "appends", "xids", "folds"))
heap, toast, indexes, wal = map(_mixed, ("heap", "toast", "indexes", "wal"))
words, text, cpu = map(_mixed, ("words", "text", "cpu"))


def a_second(value: Callable[[Values], float]) -> Callable[[Values], float]:
    return lambda of: of["sessions"] * value(of) / DAY


def at_peak(value: Callable[[Values], float]) -> Callable[[Values], float]:
    return lambda of: a_second(value)(of) * of["peak"]


def a_day(value: Callable[[Values], float]) -> Callable[[Values], float]:
    return lambda of: of["sessions"] * value(of)


def not_hot(of: Values) -> float:
    """Appends of an average session that leave new index entries behind."""
    share = of["long share"]
    short, long = (of[f"{kind} appends"] * (1 - of[f"{kind} hot"]) for kind in KINDS)
    return (1 - share) * short + share * long


def stored(of: Values) -> float:
    """Bytes that an average session takes on the disk."""
    return heap(of) + toast(of) + indexes(of) + of["searched"] * words(of)


def held(of: Values) -> float:
    return a_day(stored)(of) * of["hot days"]


def cores(of: Values) -> float:
    return at_peak(cpu)(of) / of["busy"]


def by_work(of: Values) -> float:
    return cores(of) / of["cores"]


def by_disk(of: Values) -> float:
    return held(of) / (of["disk"] * 1e12)


def servers(of: Values) -> float:
    return max(-(-by_work(of) // 1), -(-by_disk(of) // 1))


def splitting(of: Values) -> float:
    """Seconds that copying one partition takes."""
    return of["partition"] * 1e9 / stored(of) * entries(of) / of["moved"]


def waiting(of: Values) -> float:
    """Seconds to copy what changes while that is copied again which changed during the copy."""
    partitions = held(of) / (of["partition"] * 1e9)
    touched = at_peak(entries)(of) / partitions  # entries a second, of sessions that are at work
    return splitting(of) * (touched / of["moved"]) ** 2


def tokens(of: Values) -> float:
    """Tokens a minute that the folds of the busiest hour want."""
    return at_peak(folds)(of) * 60 * (of["fold input"] + of["fold output"])


def allowed(of: Values) -> float:
    """Folds a day that the provider's limit lets through."""
    return of["tokens a minute"] * MINUTES / (of["fold input"] + of["fold output"])


def making(of: Values) -> float:
    """Folds that are being made at the peak, if no limit holds them back."""
    return at_peak(folds)(of) * of["call seconds"]


SECTIONS: Final[dict[str, list[Line]]] = {
    "work": [
        Line("entries a day", "", "sessions * entries", a_day(entries)),
        Line("appends a day", "", "sessions * appends", a_day(appends)),
        Line("entries a second, on average", "", "÷ 86,400", a_second(entries)),
        Line("entries a second, at the peak", "", "* peak", at_peak(entries)),
        Line("appends a second, at the peak", "", "appends ÷ 86,400 * peak", at_peak(appends)),
        Line(
            "of this machine's client processes",
            "",
            "÷ append rate",
            lambda of: at_peak(appends)(of) / of["append rate"],
        ),
    ],
    "bytes": [
        Line("tables", "B", "sessions * tables", a_day(heap)),
        Line("TOAST", "B", "sessions * TOAST", a_day(toast)),
        Line("indexes", "B", "sessions * indexes", a_day(indexes)),
        Line(
            "word index",
            "B",
            "sessions * searched * words",
            lambda of: a_day(words)(of) * of["searched"],
        ),
        Line("all of it", "B", "the sum", a_day(stored)),
        Line(
            "of that, bodies of entries",
            "%",
            "bodies ÷ the sum",
            lambda of: 100 * text(of) / stored(of),
        ),
        Line("write-ahead log", "B", "sessions * write-ahead log", a_day(wal)),
        Line("write-ahead log a second, at the peak", "B", "÷ 86,400 * peak", at_peak(wal)),
        Line("held", "B", "a day * hot days", held),
    ],
    "servers": [
        Line("cores at the peak", "", "sessions a second, at the peak * cpu ÷ busy", cores),
        Line("servers, by work", "", "÷ cores of one", by_work),
        Line("servers, by disk", "", "held ÷ disk of one", by_disk),
        Line("servers", "", "the larger, rounded up", servers),
        Line("bytes on each", "B", "held ÷ servers", lambda of: held(of) / servers(of)),
        Line(
            "write-ahead log a second on each, at the peak",
            "B",
            "÷ servers",
            lambda of: at_peak(wal)(of) / servers(of),
        ),
        Line(
            "partitions of `entries` on each",
            "",
            "bytes on each ÷ partition",
            lambda of: held(of) / servers(of) / (of["partition"] * 1e9),
        ),
        Line(
            "hours to split one of them",
            "h",
            "its entries ÷ moved",
            lambda of: splitting(of) / 3600,
        ),
        Line(
            "seconds in which all wait for that, at the peak",
            "s",
            "what changes while the changes are copied ÷ moved",
            waiting,
        ),
    ],
    "vacuum": [
        Line(
            "updates of `sessions` a second, at the peak",
            "",
            "one for each append",
            at_peak(appends),
        ),
        Line(
            "of these, with new index entries",
            "",
            "appends * (1 - hot)",
            at_peak(not_hot),
        ),
        Line("transaction ids a day, on one server", "", "sessions * ids", a_day(xids)),
        Line(
            "freezes a day, on one server",
            "",
            "÷ 200 million",
            lambda of: a_day(xids)(of) / FREEZE_AT,
        ),
        Line(
            "days until one server would stop, were nothing frozen",
            "",
            "2.1 billion ÷ ids a day",
            lambda of: STOPS_AT / a_day(xids)(of),
        ),
        Line(
            "freezes a day, on each of the servers",
            "",
            "÷ servers",
            lambda of: a_day(xids)(of) / FREEZE_AT / servers(of),
        ),
    ],
    "connections": [
        Line(
            "connections that the processes may open",
            "",
            "processes * pool",
            lambda of: of["processes"] * of["pool"],
        ),
        Line(
            "busy at the peak, appends alone",
            "",
            "appends a second * append seconds",
            lambda of: at_peak(appends)(of) * of["append seconds"],
        ),
        Line(
            "for each server",
            "",
            "÷ servers",
            lambda of: at_peak(appends)(of) * of["append seconds"] / servers(of),
        ),
    ],
    "folds": [
        Line("folds a day", "", "sessions * folds", a_day(folds)),
        Line("folds a second, at the peak", "", "÷ 86,400 * peak", at_peak(folds)),
        Line("made at the same time, at the peak", "", "* call seconds", making),
        Line("workers", "", "÷ at once", lambda of: making(of) / of["at once"]),
        Line(
            "workers, were the summarizer instant",
            "",
            "folds a second ÷ fold rate",
            lambda of: at_peak(folds)(of) / of["fold rate"],
        ),
        Line("tokens a minute, at the peak", "", "folds * (input + output)", tokens),
        Line(
            "times the provider's limit",
            "",
            "÷ tokens a minute",
            lambda of: tokens(of) / of["tokens a minute"],
        ),
        Line(
            "folds a day that the limit lets through", "", "limit * 1,440 ÷ tokens a fold", allowed
        ),
        Line(
            "the queue's write-ahead log a day",
            "B",
            "folds * fold wal",
            lambda of: a_day(folds)(of) * of["fold wal"],
        ),
    ],
}
