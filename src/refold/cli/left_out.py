"""Notices about settings that a project's files may not set."""

from collections.abc import Iterator, Sequence

import typer

from refold.cli.output import aligned
from refold.exports.moments import clip
from refold.settings import LeftOut, Settings
from refold.settings.names import printable, short_repr

_MAX_KEYS = 8
_MAX_VALUE = 40
_FIX = (
    "`refold trust` shows what these files set and asks whether you trust them. To keep a setting "
    "for yourself: refold config KEY VALUE."
)


def print_left_out(settings: Settings) -> None:
    if settings.left_out:
        typer.echo(left_out_notice(settings.left_out), err=True)


def left_out_notice(left_out: Sequence[LeftOut]) -> str:
    """In two sentences: which settings do not apply, why, and what to do."""
    keys = list(dict.fromkeys(setting.key for setting in left_out))
    names = ", ".join(map(printable, keys[:_MAX_KEYS]))
    more = f" and {len(keys) - _MAX_KEYS} more" if len(keys) > _MAX_KEYS else ""
    places = list(dict.fromkeys(_file_of(setting) for setting in left_out))
    changed = any(setting.verdict == "changed" for setting in left_out)
    why = "changed since you trusted it" if changed else "is not trusted"
    return (
        f"Left out: {names}{more}, because {', '.join(places)} {why}. "
        "`refold config` shows them; `refold trust` lets them apply."
    )


def left_out_lines(left_out: Sequence[LeftOut]) -> Iterator[str]:
    """The part of `refold config` about left out settings."""
    yield "\nLeft out: these need your own file, the environment, or a folder that you trust"
    rows = [
        (printable(setting.key), clip(short_repr(setting.value), _MAX_VALUE), _origin(setting))
        for setting in left_out
    ]
    yield from aligned(rows)
    yield _FIX


def left_out_json(left_out: Sequence[LeftOut]) -> list[dict[str, object]]:
    return [
        {
            "key": setting.key,
            "value": setting.value,
            "source": str(setting.source),
            "reason": _reason(setting),
        }
        for setting in left_out
    ]


def _origin(setting: LeftOut) -> str:
    return f"{setting.source}: {_reason(setting)}"


def _reason(setting: LeftOut) -> str:
    if setting.file is None:
        return "comes with the profile that an untrusted file names"
    return "changed since you trusted it" if setting.verdict == "changed" else "not trusted"


def _file_of(setting: LeftOut) -> str:
    if setting.file is not None:
        return printable(setting.file)
    return setting.source.place.partition(", line")[0]
