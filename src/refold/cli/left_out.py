"""What a command says of settings that a project's files may not set."""

from collections.abc import Iterator, Sequence

import typer

from refold.cli.output import aligned, clipped
from refold.settings import LeftOut, Settings
from refold.settings.names import printable, shown

_NAMED = 8
"""More keys are counted, not named."""
_MAX_VALUE = 40

WHAT_TO_DO = (
    "`refold trust` shows what these files set and asks whether you trust them. To keep a setting "
    "for yourself: refold config KEY VALUE."
)


def say_left_out(settings: Settings) -> None:
    """Say on standard error what does not apply, if anything."""
    if settings.left_out:
        typer.echo(left_out_notice(settings.left_out), err=True)


def left_out_notice(left_out: Sequence[LeftOut]) -> str:
    """In two sentences: which settings do not apply, why, and what to do."""
    keys = list(dict.fromkeys(one.key for one in left_out))
    names = ", ".join(map(printable, keys[:_NAMED]))
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    places = list(dict.fromkeys(_file_of(one) for one in left_out))
    changed = any(one.verdict == "changed" for one in left_out)
    why = "changed since you trusted it" if changed else "is not trusted"
    return (
        f"Left out: {names}{more}, because {', '.join(places)} {why}. "
        "`refold config` shows them; `refold trust` lets them apply."
    )


def left_out_lines(left_out: Sequence[LeftOut]) -> Iterator[str]:
    """The part of `refold config` about them."""
    yield "\nLeft out: these need your own file, the environment, or a folder that you trust"
    yield from aligned(
        [(printable(one.key), clipped(shown(one.value), _MAX_VALUE), _why(one)) for one in left_out]
    )
    yield WHAT_TO_DO


def left_out_json(left_out: Sequence[LeftOut]) -> list[dict[str, object]]:
    return [
        {"key": one.key, "value": one.value, "source": str(one.source), "reason": _reason(one)}
        for one in left_out
    ]


def _why(one: LeftOut) -> str:
    return f"{one.source}: {_reason(one)}"


def _reason(one: LeftOut) -> str:
    if one.file is None:
        return "comes with the profile that an untrusted file names"
    return "changed since you trusted it" if one.verdict == "changed" else "not trusted"


def _file_of(one: LeftOut) -> str:
    return printable(one.file) if one.file is not None else one.source.place.partition(", line")[0]
