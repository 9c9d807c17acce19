"""Screens without what differs from one run to the next, so that they can be kept."""

import re
from collections.abc import Mapping

_SPINNERS = "⠁⠂⠄⡀⢀⠠⠐⠈⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏⣾⣽⣻⢿⡿⣟⣯⣷◐◓◑◒◴◷◶◵"
_UNITS = r"(?:ms|s|sec|seconds?|min|minutes?|h|hours?|days?)"

_VARYING: tuple[tuple[str, str], ...] = (
    (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?", "<when>"),
    (r"\b\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?\b", "<time>"),
    (r"\b(?:just now|(?:\d+|an?) (?:second|minute|hour|day)s? ago)\b", "<ago>"),
    (r"\b\d+(?:[.,]\d+)? ?" + _UNITS + r"\b(?: \d+ ?" + _UNITS + r"\b)*", "<lasted>"),
    (r"https?://(?:127\.0\.0\.1|localhost):\d+", "<server>"),
    (r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", "<id>"),
    (r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b", "<id>"),
    (r"(?:/private)?/(?:tmp|var/folders)/[^\s'\"│|]+", "<path>"),
    (r"\brefold v?\d+\.\d+\.\d+\S*", "refold <version>"),
    (f"[{_SPINNERS}]", "<spin>"),
)


def steady(screen: str, names: Mapping[str, str] | None = None) -> str:
    """The screen with times, durations, ids, temporary paths and spinners replaced.

    `names` maps what else varies, such as a session's name, to what stands in its place. Spaces
    after something replaced are one, for its length varied, too.
    """
    for found, shown in sorted((names or {}).items(), key=lambda pair: -len(pair[0])):
        screen = re.sub(re.escape(found) + "( ?) *", rf"{shown}\1", screen)
    for pattern, shown in _VARYING:
        screen = re.sub(f"(?:{pattern})( ?) *", rf"{shown}\1", screen)
    return "\n".join(line.rstrip() for line in screen.splitlines()).strip("\n")
