"""What if: who replays what, what the result says, and who may save it where."""

import asyncio
import html
import re

import pytest
from console_world import CONSOLE, LOCAL, TEAM, ConsoleWorld, console, form_token
from replayable import stored
from test_console_folds import words_of
from test_console_hostile import HOSTILE, Tags, session_of

from refold.console import replays, what_if
from refold.console.access import Access
from refold.console.app import open_address
from refold.console.local import LocalConsole, application
from refold.console.pages import what_if_url
from refold.lab.findings import Findings, PolicyFindings, SessionFindings
from refold.log import export_session
from refold.settings import load_settings

pytest.importorskip("rs_bpe")
HERE = f"{CONSOLE}/what-if"


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    """Nobody's own settings are read or written."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "xdg_config_home" / "refold" / "config.toml"


def findings(name="talk", label="balanced (changed)"):
    """What a replay might have found."""
    policies = (
        PolicyFindings(
            "everything",
            ours=False,
            best=False,
            cost=2,
            share=(1, 1, 1),
            kept=(1, 1, 1),
            names=(20, 20),
        ),
        PolicyFindings(
            label,
            ours=True,
            best=True,
            cost=1,
            share=(0.5, 0.4, 0.6),
            kept=(0.95, 0.9, 1),
            names=(19, 20),
            folds=2,
        ),
        PolicyFindings("old results out", ours=False, best=False, error=name),
    )
    sizes = {"everything": (1, 2, 3), label: (1, 2, 2)}
    session = SessionFindings(name, 12, name, 200_000, short=False, requests=3, sizes=sizes)
    return Findings(f"Of {name}", (f"A note on {name}.",), policies, (session,), ((name, name),))


@pytest.fixture
def instant(monkeypatch):
    """Replays that end at once, with what each test sets."""
    found = {"findings": findings(), "assignments": []}

    async def replayed(assignment, progress, **_):
        found["assignments"].append(assignment)
        progress(1, 1)
        return found["findings"]

    monkeypatch.setattr(replays, "replayed", replayed)
    return found


@pytest.fixture
def endless(monkeypatch):
    """Replays that never end; those that were canceled."""
    canceled = []

    async def replayed(assignment, progress, **_):
        progress(3, 9)
        try:
            await asyncio.Event().wait()
        finally:
            canceled.append(assignment)

    monkeypatch.setattr(replays, "replayed", replayed)
    return canceled


async def send(browser, where, origin=TEAM, page=CONSOLE, **fields):
    token = form_token(await browser.get(page))
    form = {"form_token": token or "", **fields}
    return await browser.post(where, data=form, headers={"origin": origin})


async def start(browser, *sessions, origin=TEAM, page=None, **fields):
    """Begin a replay as the form does, and the address that it leads to."""
    page = page or what_if_url(*sessions)
    return await send(browser, f"{HERE}/runs", origin, page, session=list(sessions), **fields)


async def ended(browser, answer):
    """The page of a replay when it has ended."""
    assert answer.status_code == 303, answer.text
    for _ in range(6_000):
        page = await browser.get(answer.headers["location"])
        if "Replaying" not in page.text:
            return page
        await asyncio.sleep(0.05)
    raise AssertionError("It does not end.")


async def comes_to(browser, where, words):
    """The page as soon as it says this."""
    for _ in range(2_000):
        page = await browser.get(where)
        if words in words_of(page):
            return page
        await asyncio.sleep(0.02)
    raise AssertionError(words_of(page))


async def test_chosen_sessions_are_compared_and_each_point_has_a_row():
    async with console(local=True) as world:
        browser = await world.opened()
        log = world.store.log("default")
        await stored(log, "a talk", turns=30)
        form = await browser.get(what_if_url("a talk"))
        assert "a talk" in form.text
        assert 'placeholder="8000"' in form.text
        change = {"fold.keep.amount": "4,000"}
        page = await ended(browser, await start(browser, "a talk", origin=LOCAL, **change))
        names = re.findall(r"<title>([^<:]+): \d+% of the cost", page.text)
        rows = re.findall(r'<tr class="[^"]+"><th scope="row">(?:\* )?([^<]+)</th>', page.text)
        assert {*names} == {*rows}
        assert {"everything", "balanced", "balanced (changed)"} <= {*names}
        assert "fold.keep.amount 4000" in words_of(page)
        assert "120 messages" in words_of(page)
        assert page.text.count('class="line s0"') == 2  # in the legend, and drawn
        report = await browser.get(f"{answer_of(page)}/report.html")
        assert report.headers["content-disposition"] == 'attachment; filename="what-if.html"'
        assert re.findall(r"<title>([^<:]+): \d+% of the cost", report.text) == names


def answer_of(page):
    return re.findall(rf"({HERE}/runs/[\w-]+)/report.html", page.text)[0]


async def test_the_lab_gets_the_lines_of_an_export(instant):
    """So the figures are those of `refold lab` on a file of `refold export`."""
    async with console(local=True) as world:
        browser, log = await world.opened(), world.store.log("default")
        await stored(log, "talk", turns=300)
        await ended(browser, await start(browser, "talk", origin=LOCAL))
        [(name, lines)] = instant["assignments"][0].sessions
        whole = "".join([line async for line in export_session(log, "talk")])
        assert name == "talk"
        assert b"".join(lines).decode() == "\n".join(whole.split("\n")[1:-2]) + "\n"


async def test_of_a_long_session_the_newest_messages_are_replayed(instant, monkeypatch):
    monkeypatch.setattr(replays, "MAX_MESSAGES", 100)
    async with console(local=True) as world:
        browser, log = await world.opened(), world.store.log("default")
        await stored(log, "long", turns=400)
        await ended(browser, await start(browser, "long", origin=LOCAL))
        [(_, lines)] = instant["assignments"][0].sessions
        seqs = [int(re.findall(rb'"seq":(\d+)', line)[0]) for line in lines]
        assert seqs == [1, *range(1_102, 1_602)]


async def test_what_is_too_large_is_not_read(instant, monkeypatch):
    monkeypatch.setattr(replays, "MAX_BYTES", 100_000)
    async with console(local=True) as world:
        browser, log = await world.opened(), world.store.log("default")
        await stored(log, "small", turns=2)
        await stored(log, "large", turns=100)
        await ended(browser, await start(browser, "small", "large", origin=LOCAL))
        [(_, small), (_, large)] = instant["assignments"][0].sessions
        assert small
        assert not large


async def test_profiles_that_are_tried_come_first(instant):
    async with console(local=True) as world:
        browser = await world.opened()
        await stored(world.store.log("default"), "talk")
        wanted = {"profile": "copilot", "trigger.tokens": "60000", "others": "1"}
        await ended(browser, await start(browser, "talk", origin=LOCAL, **wanted))
        profiles = instant["assignments"][0].profiles
        assert [each.name for each in profiles][:2] == ["copilot (changed)", "balanced"]
        assert {"copilot", "inkeep"} <= {each.name for each in profiles}
        assert profiles[0].trigger.tokens == 60_000


@pytest.mark.usefixtures("instant")
async def test_a_form_keeps_what_was_tried():
    async with console(local=True) as world:
        browser = await world.opened()
        await stored(world.store.log("default"), "talk")
        wanted = {"profile": "copilot", "trigger.tokens": "1234567", "others": "1"}
        page = await ended(browser, await start(browser, "talk", origin=LOCAL, **wanted))
        again = html.unescape(re.findall(r'href="([^"]+)">Change settings', page.text)[0])
        form = (await browser.get(again)).text
        assert 'value="1234567"' in form
        assert re.search(r"<option selected>copilot</option>", form)
        assert 'name="others" value="1" checked' in form


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"trigger.tokens": "many"}, "trigger.tokens needs a number"),
        ({"trigger.tokens": "-5"}, "trigger.tokens cannot be so"),
        ({"trigger.tokens": "0.5"}, "trigger.tokens cannot be so"),
        ({"trigger.tokens": "nan"}, "trigger.tokens needs a number"),
        ({"profile": "none"}, "There is no such profile"),
    ],
)
async def test_a_value_that_cannot_be_is_said_before_anything_runs(instant, fields, words):
    async with console(local=True) as world:
        browser = await world.opened()
        await stored(world.store.log("default"), "talk")
        answer = await start(browser, "talk", origin=LOCAL, **fields)
        assert answer.status_code == 422
        assert words in words_of(answer)
        assert instant["assignments"] == []


@pytest.mark.usefixtures("instant")
async def test_without_a_session_the_page_says_how_to_choose():
    async with console(local=True) as world:
        browser = await world.opened()
        await stored(world.store.log("default"), "talk")
        page = await browser.get(HERE)
        assert page.status_code == 200
        assert "No session is chosen" in page.text
        answer = await start(browser, origin=LOCAL, page=what_if_url("talk"))
        assert answer.status_code == 422
        assert "No session is chosen" in answer.text
        listed = await browser.get(CONSOLE)
        assert re.search(
            r'type="checkbox" [^>]*form="what-if" name="session" value="talk"', listed.text
        )


@pytest.mark.usefixtures("instant")
async def test_too_many_sessions_are_refused():
    async with console(local=True) as world:
        browser, log = await world.opened(), world.store.log("default")
        names = [f"talk {nth}" for nth in range(what_if.MAX_SESSIONS + 1)]
        for name in names:
            await stored(log, name, turns=1)
        form = await browser.get(what_if_url(*names))
        assert "1 more was chosen" in words_of(form)
        answer = await start(browser, *names, origin=LOCAL)
        assert answer.status_code == 422
        assert "21 sessions are chosen" in answer.text


async def test_a_session_without_an_answer_is_said():
    async with console(local=True) as world:
        browser, log = await world.opened(), world.store.log("default")
        await stored(log, "silent", turns=0)
        page = await ended(browser, await start(browser, "silent", origin=LOCAL))
        assert "There is no result" in words_of(page)
        assert "silent: it has no answer of a model" in words_of(page)


async def test_a_session_with_nothing_to_lose_has_a_table_and_no_picture(instant):
    found = findings()
    policies = tuple(
        PolicyFindings(x.name, x.ours, x.best, cost=1, share=(1, 1, 1)) for x in found.policies
    )
    instant["findings"] = Findings(found.finding, found.notes, policies, found.sessions)
    async with console(local=True) as world:
        browser = await world.opened()
        await stored(world.store.log("default"), "talk")
        page = await ended(browser, await start(browser, "talk", origin=LOCAL))
        assert "There is nothing to plot" in page.text
        assert page.text.count("<tr class=") == 3


async def test_one_person_has_one_replay_at_a_time(endless):
    async with console(local=True) as world:
        browser, log = await world.opened(), world.store.log("default")
        await stored(log, "one")
        await stored(log, "two")
        first = await start(browser, "one", origin=LOCAL)
        page = await comes_to(browser, first.headers["location"], "3 of 9 replays")
        assert 'hx-trigger="every 1s"' in page.text
        second = await start(browser, "two", origin=LOCAL)
        assert second.headers["location"] == f"{first.headers['location']}?busy=1"
        assert "one runs at a time" in (await browser.get(second.headers["location"])).text
        assert "Follow or cancel it" in (await browser.get(what_if_url("two"))).text
        where = first.headers["location"]
        answer = await send(browser, f"{where}/cancel", LOCAL, where)
        assert len(endless) == 1
        assert "was canceled" in (await browser.get(answer.headers["location"])).text
        third = await start(browser, "two", origin=LOCAL)
        assert "busy" not in third.headers["location"]
        gone = await browser.get(where)
        assert gone.status_code == 404
        assert "That replay is not here" in gone.text


@pytest.mark.usefixtures("endless")
async def test_a_service_makes_few_replays_at_once():
    async with console() as world:
        await stored(world.store.log("acme"), "talk")
        answers = []
        for _ in range(replays.MAX_UNDER_WAY + 1):
            browser = await world.signed_in("acme")
            answers.append(await start(browser, "talk"))
        assert [each.status_code for each in answers] == [303] * replays.MAX_UNDER_WAY + [429]
        assert "under way here" in answers[-1].text


@pytest.mark.usefixtures("instant")
async def test_the_console_for_reading_replays_too(home):
    world = ConsoleWorld(local=True)
    state = LocalConsole(load_settings("balanced"), world.store)
    access = Access(state)
    world.app = application(state, access)
    async with state:
        await stored(world.store.log("default"), "talk")
        browser = world.browser(LOCAL)
        await browser.get(open_address(LOCAL, access.new_token()))
        wanted = {"profile": "copilot", "trigger.tokens": "90000"}
        answer = await start(browser, "talk", origin=LOCAL, **wanted)
        page = await ended(browser, answer)
        where = answer.headers["location"]
        assert "Save as profile" in page.text
        assert not home.exists()
        await send(browser, f"{where}/save", LOCAL, where)
        saved = home.read_text()
        assert 'profile = "copilot"' in saved
        assert "tokens = 90000" in saved
        assert load_settings().profile.trigger.tokens == 90_000
        again = await browser.get(where)
        assert "Saved." in again.text
        assert str(home) in html.unescape(again.text)
        assert "Save as profile" not in again.text


@pytest.mark.usefixtures("instant")
async def test_what_is_set_elsewhere_is_said_when_it_is_saved(home, monkeypatch):
    home.parent.mkdir(parents=True)
    home.write_text("[fold]\nledger_tokens = 1000\n")
    monkeypatch.setenv("REFOLD_TRIGGER__TOKENS", "70000")
    async with console(local=True) as world:
        browser = await world.opened()
        await stored(world.store.log("default"), "talk")
        wanted = {"profile": "co-cli", "trigger.tokens": "90000"}
        answer = await start(browser, "talk", origin=LOCAL, **wanted)
        where = answer.headers["location"]
        await ended(browser, answer)
        await send(browser, f"{where}/save", LOCAL, where)
        page = words_of(await browser.get(where))
        assert "REFOLD_TRIGGER__TOKENS sets it to 70000" in page
        assert "fold.ledger_tokens = 1000" in page


# Who may.

CHANGES = ("/runs", "/runs/{run}/cancel", "/runs/{run}/save")


async def run_of(browser):
    wanted = {"profile": "copilot"}
    answer = await start(browser, "talk", **wanted)
    await ended(browser, answer)
    return answer.headers["location"].rpartition("/")[2]


@pytest.mark.parametrize(
    ("tenant", "roles", "may"),
    [
        ("default", ["read"], False),
        ("default", ["read", "write"], False),
        ("default", ["admin"], True),
        ("acme", ["read"], False),
        ("acme", ["read", "write", "admin"], False),
    ],
)
@pytest.mark.usefixtures("instant")
async def test_who_may_save_for_the_whole_service(home, tenant, roles, may):
    async with console() as world:
        await stored(world.store.log(tenant), "talk")
        browser = await world.signed_in(tenant, *roles)
        where = f"{HERE}/runs/{await run_of(browser)}"
        page = await browser.get(where)
        assert ("Save as profile" in page.text) is may
        assert ("refold config profile copilot" in page.text) is not may
        answer = await send(browser, f"{where}/save")
        assert answer.status_code == (303 if may else 403)
        assert home.exists() is may


@pytest.mark.parametrize("roles", [["use"], ["write"]])
async def test_who_may_not_read_replays_nothing(instant, roles):
    async with console() as world:
        await stored(world.store.log("acme"), "talk")
        reader, browser = await world.signed_in("acme"), await world.signed_in("acme", *roles)
        run = await run_of(reader)
        for each in (HERE, f"{HERE}/runs/{run}", f"{HERE}/runs/{run}/report.html"):
            assert (await browser.get(each)).status_code == 403
        for each in CHANGES:
            answer = await send(browser, HERE + each.format(run=run), session="talk")
            assert answer.status_code == 403
        assert len(instant["assignments"]) == 1


@pytest.mark.parametrize("tenant", ["acme", "beta"])
@pytest.mark.usefixtures("instant")
async def test_another_persons_replay_is_one_that_never_was(tenant):
    """Of the same tenant, too: it is kept for whoever began it."""
    async with console() as world:
        await stored(world.store.log("acme"), "talk")
        run = await run_of(await world.signed_in("acme"))
        other = await world.signed_in(tenant, "read", "write", "admin")
        for name in (run, "a" * 24):
            for path in ("", "/report.html"):
                answer = await other.get(f"{HERE}/runs/{name}{path}")
                assert answer.status_code == 404
                assert "Of talk" not in answer.text
            assert (await send(other, f"{HERE}/runs/{name}/cancel")).status_code == 404
        part = await other.get(f"{HERE}/runs/{run}", headers={"HX-Request": "true"})
        assert part.text == ""


async def test_another_tenants_sessions_cannot_be_chosen(instant):
    async with console() as world:
        await stored(world.store.log("acme"), "talk")
        await stored(world.store.log("beta"), "mine")
        browser = await world.signed_in("beta", "read", "write", "admin")
        for names in (["talk"], ["mine", "talk"]):
            assert (await browser.get(what_if_url(*names))).status_code == 404
            answer = await start(browser, *names, page=CONSOLE)
            never = await start(browser, *[x.replace("talk", "none") for x in names], page=CONSOLE)
            assert answer.status_code == never.status_code == 404
            assert answer.text.replace("talk", "none") == never.text
        assert instant["assignments"] == []


@pytest.mark.parametrize("how", ["no token", "another browser's", "another site", "no origin"])
async def test_a_form_of_another_site_begins_cancels_and_saves_nothing(instant, home, how):
    async with console() as world:
        await stored(world.store.log("default"), "talk")
        browser, other = [await world.signed_in("default", "admin") for _ in range(2)]
        run = await run_of(browser)
        page = await (other if how == "another browser's" else browser).get(CONSOLE)
        token = "" if how == "no token" else form_token(page)
        origin = {"no origin": {}, "another site": {"origin": "https://evil.example"}}
        headers = origin.get(how, {"origin": TEAM})
        for each in CHANGES:
            form = {"form_token": token, "session": "talk"}
            where = HERE + each.format(run=run)
            assert (await browser.post(where, data=form, headers=headers)).status_code == 403
            assert (await browser.get(where)).status_code in (404, 405, 422)
        assert len(instant["assignments"]) == 1
        assert not home.exists()


# What it shows.


@pytest.mark.parametrize("kind", HOSTILE)
async def test_hostile_names_change_nothing_but_words(instant, kind):
    pages = []
    for words in ("harmless words", HOSTILE[kind].encode(errors="replace").decode()):
        name = session_of(words)
        instant["findings"] = findings(words)
        async with console(local=True) as world:
            browser = await world.opened()
            await stored(world.store.log("default"), name, turns=1)
            form = await browser.get(what_if_url(name))
            answer = await start(browser, name, origin=LOCAL)
            page = await ended(browser, answer)
            report = await browser.get(f"{answer.headers['location']}/report.html")
            pages.append([Tags(each.text) for each in (form, page, report)])
    for plain, hostile in zip(*pages, strict=True):
        assert plain.found == hostile.found
        for name, value in hostile.values:
            assert not name.startswith("on")
            if name in ("href", "action", "src", "hx-get"):
                assert value.startswith(("/console", "#", "?"))


@pytest.mark.usefixtures("instant")
async def test_the_file_needs_no_network_and_runs_nothing():
    async with console(local=True) as world:
        browser = await world.opened()
        await stored(world.store.log("default"), "talk")
        answer = await start(browser, "talk", origin=LOCAL)
        await ended(browser, answer)
        report = await browser.get(f"{answer.headers['location']}/report.html")
        assert "default-src 'none'" in report.headers["content-security-policy"]
        tags = Tags(report.text)
        assert "script" not in {tag for tag, *_ in tags.found}
        assert [value for name, value in tags.values if name in ("src", "href")] == []
