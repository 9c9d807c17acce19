"""What if: the lab on chosen sessions, under settings that a person tries.

It reads sessions of its caller's tenant, and writes nothing to them; saving writes the settings of
this machine's user, as `refold config` does.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Final, NamedTuple

from fastapi import APIRouter, Path, Query, Request, Response
from markupsafe import Markup
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from refold.console.access import HOME
from refold.console.pages import (
    HEADERS,
    SEE_OTHER,
    Page,
    access_of,
    is_part,
    page,
    session_url,
    values_of,
)
from refold.console.replays import (
    MAX_MESSAGES,
    MAX_SESSIONS,
    OWN,
    Choice,
    Run,
    Runs,
    Work,
    plain,
)
from refold.errors import InvalidInput, InvalidSetting, SessionNotFound
from refold.lab.charts import SERIES, scatter_of, window_of
from refold.lab.findings import BEST, LEGEND
from refold.lab.html_report import COLUMNS, NO_POINTS, cells, facts, html_report
from refold.lab.tune import CANDIDATES, Values, changed
from refold.log import DEFAULT_TENANT, Log
from refold.log.entry import check_name
from refold.service.api.routing import CallerLog, Reader, ServiceDep
from refold.service.api.sessions import INERT
from refold.service.callers import Caller
from refold.service.service import Service
from refold.settings import KEYS, SettingChange, check_setting, load_settings, set_setting
from refold.settings.names import leaves
from refold.view.profiles import PROFILES, Profile

router = APIRouter(prefix="/what-if", route_class=Page)
HERE: Final = f"{HOME}/what-if"
_MAX_FORM: Final = 120_000
_ABOUT: Final = {
    "trigger.savings": "Compact once rereading what a compaction would leave out has cost this "
    "many times what the compaction costs. 0: only at the other limits.",
    "trigger.tokens": "Compact above this many tokens; 0: never for this reason.",
    "fold.keep.amount": "How much of the newest stays as it is: tokens, messages or a share of "
    "turns, as the profile counts.",
    "fold.ledger_tokens": "Tokens of a summary for names of what was compacted.",
    "fold.region_tokens": "Tokens beside a summary for regions of the files being worked on.",
}
"""What the fields of the form say."""
RunName = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{16,64}$")]
Names = Annotated[list[str] | None, Query(max_length=MAX_SESSIONS * 5)]
Base = Annotated[str, Query(max_length=100)]


class Setting(NamedTuple):
    """A field of the form."""

    key: str
    about: str
    value: str
    """What is typed in; empty: what the profile has."""
    default: str


def _runs(request: Request) -> Runs:
    runs: Runs = request.app.state.what_if
    return runs


# What is chosen.


@router.get("")
async def choose(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    caller: Reader,
    log: CallerLog,
    service: ServiceDep,
    session: Names = None,
    profile: Base = OWN,
) -> Response:
    """The form: which sessions, and under which settings."""
    sessions = _distinct(session or [])
    found = [await _info(log, each) for each in sessions[:MAX_SESSIONS]]
    base = _base(service, profile)
    typed = {key: request.query_params.get(key, "")[:20] for key in CANDIDATES}
    return page(
        request,
        "what_if.html",
        sessions=found,
        more=max(0, len(sessions) - MAX_SESSIONS),
        max_sessions=MAX_SESSIONS,
        max_messages=MAX_MESSAGES,
        base=profile,
        own=service.settings.profile.name,
        profiles=[*PROFILES],
        settings=_form_of(base, typed),
        others=request.query_params.get("others") == "1",
        current=_runs(request).of(caller),
        home_url=HERE,
    )


@router.post("/runs")
async def start(request: Request, caller: Reader, log: CallerLog, service: ServiceDep) -> Response:
    """Begin a replay, and lead to its page."""
    values = await values_of(request, limit=_MAX_FORM, max_fields=MAX_SESSIONS * 5 + 12)
    fields = {name: each[0].strip() for name, each in values.items()}
    sessions = _distinct(values.get("session", []))
    if not sessions:
        raise InvalidInput(
            "No session is chosen.", "Choose one or more in the list of sessions, or open one."
        )
    if len(sessions) > MAX_SESSIONS:
        raise InvalidInput(
            f"{len(sessions)} sessions are chosen; {MAX_SESSIONS} are the most.",
            "Choose fewer, or use `refold lab`, which has no such limit.",
        )
    for each in sessions:
        await _info(log, each)
    base_name = fields.get("profile", OWN)
    base = _base(service, base_name)
    changes = _values_in(base, fields)
    others = fields.get("others") == "1"
    choice = Choice(sessions, base_name, changes, others)
    work = Work(log, dict(service.settings.models), _profiles(service, choice))
    run = _runs(request).start(caller, choice, work)
    again = "" if run.choice == choice else "?busy=1"
    return RedirectResponse(f"{HERE}/runs/{run.name}{again}", SEE_OTHER)


@router.get("/runs/{run}")
async def show(
    request: Request, caller: Reader, service: ServiceDep, run: RunName, busy: str = ""
) -> Response:
    """How far a replay is, or what it has found."""
    try:
        current = _runs(request).find(caller, run)
    except HTTPException:
        if is_part(request):
            return Response(headers={"HX-Redirect": f"{HERE}/runs/{run}"})
        return page(request, "what_if_gone.html", 404, here=HERE)
    found, sessions = current.findings, current.choice.sessions
    drawn: dict[str, Any] = {}
    if found is not None:
        # Both escape what they show; the templates escape everything else.
        drawn = {
            "picture": Markup(scatter_of(found)),  # noqa: S704
            "windows": [Markup(window_of(each)) for each in found.sessions],  # noqa: S704
            "rows": [(each, cells(each)) for each in found.policies],
            "facts": [facts(each) for each in found.sessions],
        }
    template = "what_if_result.html" if is_part(request) else "what_if_run.html"
    return page(
        request,
        template,
        run=current,
        busy=bool(busy),
        here=f"{HERE}/runs/{run}",
        columns=COLUMNS,
        no_points=NO_POINTS,
        legend=LEGEND,
        best_legend=BEST,
        series=SERIES,
        money_url=session_url(sessions[0], "/costs") if len(sessions) == 1 else f"{HOME}/money",
        may_save=_may_save(request, caller),
        own=service.settings.profile.name,
        **drawn,
    )


@router.get("/runs/{run}/report.html")
async def export(request: Request, caller: Reader, run: RunName) -> Response:
    """The result as one file that opens offline."""
    current = _runs(request).find(caller, run)
    if current.findings is None:
        raise HTTPException(404, "That replay has no result.")
    about = [f"Settings: {'; '.join(current.choice.commands) or 'as they are'}."]
    html = html_report(current.findings, datetime.now(UTC), about)
    headers = {
        **HEADERS,
        "Content-Security-Policy": INERT,
        "Content-Disposition": 'attachment; filename="what-if.html"',
    }
    return Response(html.encode(errors="replace"), headers=headers, media_type="text/html")


@router.post("/runs/{run}/cancel")
async def cancel(request: Request, caller: Reader, run: RunName) -> Response:
    """End a replay that is under way."""
    await values_of(request)
    current = _runs(request).find(caller, run)
    await _runs(request).cancel(current)
    return RedirectResponse(f"{HERE}/runs/{run}", SEE_OTHER)


@router.post("/runs/{run}/save")
async def save(request: Request, caller: Reader, run: RunName) -> Response:
    """Write the settings that were tried to the file of this machine's user."""
    await values_of(request)
    if not _may_save(request, caller):
        caller.require_operator()
    current = _runs(request).find(caller, run)
    if current.findings is None or not current.choice.commands:
        raise InvalidInput("There is nothing to save.", "Change a setting, and replay with it.")
    changes, elsewhere = await asyncio.to_thread(_write, current)
    current.changes, current.elsewhere = changes, elsewhere
    return RedirectResponse(f"{HERE}/runs/{run}#saved", SEE_OTHER)


def _may_save(request: Request, caller: Caller) -> bool:
    """Whether this caller may write this machine's settings: they are those of all tenants."""
    if not access_of(request).by_key:
        return True  # only this machine reaches it, and its settings are the caller's own
    return caller.tenant == DEFAULT_TENANT and caller.may("admin")


def _write(run: Run) -> tuple[list[SettingChange], list[str]]:
    choice = run.choice
    wanted = {} if choice.base == OWN else {"profile": choice.base}
    wanted |= {key: plain(value) for key, value in choice.values.items()}
    for key, value in wanted.items():
        check_setting(key, value)
    changes = [set_setting(key, value) for key, value in wanted.items()]
    if choice.base == OWN:
        return changes, []
    settings = load_settings()
    own = settings.values()
    tried = dict(leaves(_tried(PROFILES[choice.base], choice.values).model_dump(exclude={"name"})))
    elsewhere = [
        f"{key} = {own[key]} ({settings.sources[key]})"
        for key in KEYS
        if own[key] != tried[key] and key not in wanted
    ]
    return changes, elsewhere


# Profiles and their values.


def _base(service: Service, name: str) -> Profile:
    if name == OWN:
        return service.settings.profile
    if name not in PROFILES:
        raise InvalidInput("There is no such profile.", f"There are: {', '.join(PROFILES)}.")
    return PROFILES[name]


def _profiles(service: Service, choice: Choice) -> tuple[Profile, ...]:
    """What is compared: what was tried first, then the settings as they are, then the others."""
    own, base = service.settings.profile, _base(service, choice.base)
    name = own.name if own == PROFILES.get(own.name) else f"{own.name} (your settings)"
    found: dict[str, Profile] = {}
    if choice.values:
        tried = _tried(base, choice.values)
        label = f"{base.name} (changed)"
        found[label] = tried.model_copy(update={"name": label})
    elif choice.base != OWN:
        found[base.name] = base
    found.setdefault(name, own.model_copy(update={"name": name}))
    if choice.others:
        for each in PROFILES.values():
            found.setdefault(each.name, each)
    return tuple(found.values())


def _tried(base: Profile, values: Values) -> Profile:
    try:
        return changed(base, values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{key} cannot be so: {first['msg']}.", "Change it.") from error
    except InvalidSetting as error:
        raise InvalidInput(error.what, error.fix) from error


def _values_in(base: Profile, fields: Mapping[str, str]) -> dict[str, float]:
    """The values that were typed in and differ from the profile's; each must be possible."""
    own = _leaves(base)
    values: dict[str, float] = {}
    for key in CANDIDATES:
        text = fields.get(key, "").replace(",", "")
        if not text:
            continue
        number = None
        with suppress(ValueError):
            number = float(text[:20])
        if number is None or not abs(number) < 1e12:  # noqa: PLR2004 - also not a number
            raise InvalidInput(f"{key} needs a number.", "Leave it empty to keep the profile's.")
        if number != own[key]:
            values[key] = int(number) if number.is_integer() else number
    if values:
        _tried(base, values)
    return values


def _form_of(base: Profile, typed: Mapping[str, str]) -> list[Setting]:
    own = _leaves(base)
    return [Setting(key, _ABOUT[key], typed.get(key, ""), plain(own[key])) for key in CANDIDATES]


def _leaves(profile: Profile) -> dict[str, float]:
    """The values of a profile that can be tried, by their keys."""
    found: dict[str, float] = {}
    for key in CANDIDATES:
        value: object = profile
        for name in key.split("."):
            value = getattr(value, name)
        found[key] = float(value) if isinstance(value, int | float) else 0.0
    return found


class _Chosen(NamedTuple):
    name: str
    title: str
    messages: int


async def _info(log: Log, session: str) -> _Chosen:
    try:
        check_name(session)
    except InvalidInput:
        raise SessionNotFound(f"There is no session {session[:40]!r}.") from None
    info = await log.info(session)
    return _Chosen(info.session, info.title or info.session, info.messages)


def _distinct(sessions: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for each in sessions if each))
