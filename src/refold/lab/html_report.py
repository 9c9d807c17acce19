"""What replays have shown as one file: it opens without a network, and holds no script."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from typing import Final

from refold.lab.charts import SERIES, scatter_of, window_of
from refold.lab.findings import (
    BEST,
    LEGEND,
    Findings,
    PolicyFindings,
    SessionFindings,
    dollars,
    percent,
    plain,
    share_text,
    tokens,
)
from refold.terminal_text import counted

COLUMNS: Final = (
    ("Cost", "In dollars"),
    ("Share", "Of what sending everything costs"),
    ("Cached", "Tokens that a provider had in its cache"),
    ("Kept", "Of the old names that the model used again, those it was still shown"),
    ("Refused", "Requests too long for the window, or with a call cut from its result"),
    ("Largest", "Tokens of the largest request"),
    ("Folds", "How often older messages were folded into a summary"),
)
"""The columns of the table, and what they say."""
NO_POINTS: Final = (
    "There is nothing to plot: no name was used again after a long while, so that a policy could "
    "have lost it. Longer sessions show more; the table has what each policy costs."
)
_HOW: Final = "Nothing was sent anywhere, and no model was asked."
_MAX_SESSIONS: Final = 50
"""Sessions whose requests are drawn."""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def html_report(found: Findings, made: datetime, about: Sequence[str] = ()) -> str:
    """The file: the finding, the picture, its table, and each session's requests.

    Args:
        found: What is to be shown.
        made: When the file is made.
        about: Lines on what was replayed, such as the settings.
    """
    sessions = counted(len(found.sessions), "session")
    lines = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="referrer" content="no-referrer">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>What {sessions} would have cost</title>",
        f"<style>\n{STYLE}</style>\n</head>\n<body>\n<main>",
        f"<h1>What {sessions} would have cost</h1>",
        f'<p class="finding">{_words(found.finding)}</p>',
        f'<p class="note">Replayed on {made:%Y-%m-%d}. {_HOW}</p>',
        *(f'<p class="note">{_words(each)}</p>' for each in about),
    ]
    picture = scatter_of(found)
    lines.append(f'<div class="picture">\n{picture}</div>' if picture else f"<p>{NO_POINTS}</p>")
    lines += _table(found.policies)
    best = [BEST] if any(each.best for each in found.policies) else []
    lines += [f'<p class="note">{_words(each)}</p>' for each in (LEGEND, *best, *found.notes)]
    if found.sessions:
        lines.append("<h2>The window over time</h2>")
        lines.append('<p class="note">The tokens of each request that would have been sent.</p>')
    for session in found.sessions[:_MAX_SESSIONS]:
        lines += _session(session)
    if len(found.sessions) > _MAX_SESSIONS:
        more = counted(len(found.sessions) - _MAX_SESSIONS, "more session")
        lines.append(f'<p class="note">… and {more}, which the table counts.</p>')
    if found.left_out:
        lines.append("<h2>Not replayed</h2>\n<ul>")
        lines += [f"<li>{_words(name)}: {_words(why)}</li>" for name, why in found.left_out]
        lines.append("</ul>")
    return "\n".join([*lines, "</main>\n</body>\n</html>\n"])


def cells(policy: PolicyFindings) -> list[str]:
    """The figures of a policy, in the order of the columns."""
    return [
        dollars(policy.cost),
        f"{policy.share[0]:.0%}",
        percent(policy.cached),
        share_text(*policy.names) if policy.kept else "—",
        f"{policy.refused:,}",
        tokens(policy.largest),
        "—" if policy.folds is None else f"{policy.folds:,}",
    ]


def facts(session: SessionFindings) -> list[str]:
    """What is said of a session beside its name."""
    return [
        counted(session.messages, "message"),
        counted(session.requests, "request"),
        session.model or "no known model",
        f"window {tokens(session.window)}",
        *(["short: nothing would have been folded"] if session.short else []),
    ]


def _table(policies: Sequence[PolicyFindings]) -> Iterator[str]:
    heads = (f'<th scope="col" title="{about}">{name}</th>' for name, about in COLUMNS)
    yield '<div class="wide"><table>\n<thead><tr><th scope="col">What is sent</th>'
    yield f"{''.join(heads)}</tr></thead>\n<tbody>"
    for policy in policies:
        kind = f"{'ours' if policy.ours else 'theirs'}{' best' if policy.best else ''}"
        name = f"{'* ' if policy.best else ''}{_words(policy.name)}"
        figures = "".join(f"<td>{cell}</td>" for cell in cells(policy))
        if policy.error:
            figures = f'<td colspan="{len(COLUMNS)}">not replayed: {_words(policy.error)}</td>'
        yield f'<tr class="{kind}"><th scope="row">{name}</th>{figures}</tr>'
    yield "</tbody></table></div>"


def _session(session: SessionFindings) -> Iterator[str]:
    yield f"<h3><bdi>{_words(session.name)}</bdi></h3>"
    yield f'<p class="note">{_words(" · ".join(facts(session)))}</p>'
    if session.sizes:
        keys = (
            f'<li><svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">'
            f'<path class="line s{nth}" d="M0 6H12"/></svg> {_words(name)}</li>'
            for nth, name in enumerate([*session.sizes][:SERIES])
        )
        yield f'<ul class="keys">{"".join(keys)}</ul>'
        yield f'<div class="picture">\n{window_of(session)}</div>'


def _words(text: str) -> str:
    return escape(plain(text))


STYLE: Final = """:root {
  --page: #fcfcfb; --ink: #1d1d21; --faint: #5d5f67; --line: #dfdfe4;
  --ours: #c45f06; --theirs: #56657a;
  --s1: #b3520a; --s2: #1a629b; --s3: #17714f; --s4: #7a3fa0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #151618; --ink: #e7e7ea; --faint: #a3a6af; --line: #303238;
    --ours: #f0973c; --theirs: #a7b4c5;
    --s1: #f0973c; --s2: #74b7ec; --s3: #5fca9d; --s4: #c797ea;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink); overflow-wrap: anywhere;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif;
}
main { max-width: 64rem; margin: 0 auto; padding: 1.5rem clamp(.75rem, 3vw, 2rem) 4rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { font-size: 1.15rem; margin-top: 2.5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .2rem; }
code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .9em; }
.finding { font-size: 1.1rem; font-weight: 600; }
.note { color: var(--faint); font-size: .9rem; max-width: 52rem; }
.picture, .wide { overflow-x: auto; }
.picture > svg { display: block; width: 100%; min-width: 40rem; height: auto; font-size: 16px; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
td, thead th + th { text-align: right; }
th { text-align: left; font-weight: 400; }
thead th { color: var(--faint); font-size: .87rem; }
tr.ours th { color: var(--ours); font-weight: 600; }
tr.best td { font-weight: 600; }
.keys { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; padding: 0; list-style: none; }
.keys { color: var(--faint); font-size: .87rem; margin: .3rem 0; }
.paper { fill: none; stroke: var(--line); } .ink { fill: var(--ink); } .soft { fill: var(--faint); }
.grid { stroke: var(--line); } .head { font-weight: 600; }
svg .ours { fill: var(--ours); stroke: var(--ours); }
svg .theirs { fill: var(--theirs); stroke: var(--theirs); }
svg .bar { stroke-width: 2; opacity: .55; fill: none; }
svg .lead { stroke-width: 1; opacity: .6; fill: none; }
svg .label { stroke: none; } .ours.label { font-weight: 600; }
.line { fill: none; stroke-width: 2; stroke: var(--theirs); }
.s1 { stroke: var(--s1); } .s2 { stroke: var(--s2); }
.s3 { stroke: var(--s3); } .s4 { stroke: var(--s4); }
"""
