"""The figures that the page on scale rests on: what is measured, and what is taken for granted."""

from typing import Final, NamedTuple


class Fact(NamedTuple):
    """A figure that comes from outside the arithmetic."""

    name: str
    text: str
    value: float = 0.0


def _of(kind: str, what: str) -> list[Fact]:
    return [
        Fact(f"{kind} entries", f"entries of a {what}"),
        Fact(f"{kind} appends", f"appends by which they were written, of a {what}"),
        Fact(f"{kind} xids", f"transaction ids used, of a {what}"),
        Fact(f"{kind} reads", f"reading calls of the store, of a {what}"),
        Fact(f"{kind} text", f"bytes of the entries' bodies, of a {what}"),
        Fact(f"{kind} heap", f"bytes in tables, of a {what}"),
        Fact(f"{kind} toast", f"bytes kept apart from their rows (TOAST), of a {what}"),
        Fact(f"{kind} indexes", f"bytes in indexes, of a {what}"),
        Fact(f"{kind} wal", f"bytes of write-ahead log, of a {what}"),
        Fact(f"{kind} words", f"bytes of the word index, once somebody searched, of a {what}"),
        Fact(
            f"{kind} hot", f"share of updates of its row that touched no index (HOT), of a {what}"
        ),
        Fact(f"{kind} cpu", f"seconds of the server's processor, of a {what}"),
        Fact(f"{kind} folds", f"folds of a {what}"),
    ]


MEASURED: Final = [
    *_of("short", "short session"),
    *_of("long", "long session"),
    Fact("fold input", "tokens that a summarizer is shown for a fold"),
    Fact("fold output", "tokens of its summary"),
    Fact("server cpu", "microseconds of the server's processor for an append"),
    Fact("client cpu", "microseconds of the client's processor for an append"),
    Fact("append seconds", "seconds that an append took, 8 sessions at once, median"),
    Fact("append rate", "appends a second, 32 sessions at once, one client process"),
    Fact("moved", "entries a second that re-partitioning copies"),
    Fact("fold wal", "bytes of write-ahead log in the engine's own tables for a fold"),
    Fact("fold rate", "folds a second of one worker whose summarizer answers at once"),
]
ASSUMED: Final = [
    Fact("sessions", "sessions a day", 10_000_000),
    Fact("long share", "share of them that are long", 0.01),
    Fact("peak", "the busiest hour, as a multiple of the average", 3),
    Fact("hot days", "days that a session stays in PostgreSQL", 30),
    Fact("searched", "share of sessions that anybody searches", 0.05),
    Fact("busy", "share of a processor that is used on average at the peak", 0.5),
    Fact("cores", "cores of one database server", 16),
    Fact("disk", "terabytes that one database server should hold at most", 4),
    Fact("partition", "gigabytes that a partition should hold at most", 50),
    Fact("processes", "processes that talk to the store", 400),
    Fact("pool", "connections that each may open", 10),
    Fact("call seconds", "seconds that a summarizer takes for a fold", 20),
    Fact("at once", "folds that a worker makes at the same time", 20),
    Fact("tokens a minute", "tokens a minute that the summarizer's provider allows", 10_000_000),
]
