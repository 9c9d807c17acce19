"""What the pages about concepts say is so: four things kept apart, roles, peers, principles."""

import importlib
import re
from datetime import UTC

import events_reference
import pytest
from project_paths import DOCS
from remembered import opened
from shown import changed
from talks import WORDS, Talk, Writer, chat, of_500, setup, texts, work

from refold.log import FoldCompleted, Requested
from refold.memory import DailyFiles
from refold.stores import MemoryStore
from refold.testing.wire import Asked
from refold.view import PROFILES
from refold.view.profiles import BALANCED, COPILOT


@pytest.fixture
async def log():
    async with MemoryStore() as store:
        yield store.log()


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


# Four things kept apart: docs/concepts/four-things.md.


@pytest.mark.req("R011")
async def test_folding_changes_the_view_and_no_message(log):
    talk = await Talk.open(log, setup(window=8_000), write=Writer())
    await talk.go(*work(*range(10)))
    before, shown = await log.read("s"), list(await talk.session.next_messages())
    await talk.session.compact()
    after = await log.read("s")
    assert after[: len(before)] == before
    assert list(await talk.session.next_messages()) != shown
    assert talk.events("session.truncation") == []
    await talk.session.take_back()
    assert list(await talk.session.next_messages()) == shown


@pytest.mark.req("R011")
async def test_fitting_is_for_one_request_and_leaves_only_its_record(log):
    talk = await Talk.open(log, setup(COPILOT, window=4_000))
    await talk.say(*of_500(12), Asked("And now?"))
    before = await log.read("s")
    request = await talk.request()
    assert len(request.messages) < 13
    assert len(talk.events("session.truncation")) == 1
    added = (await log.read("s"))[len(before) :]
    assert [entry.kind for entry in added] == [Requested.KIND]
    roomy = await Talk.open(log, setup(COPILOT, window=1_000_000))
    assert len((await roomy.request()).messages) == 13
    assert await talk.folds() == (0, 0, 0)


@pytest.mark.req("R011")
async def test_remembering_changes_the_notes_and_not_the_view(tmp_path):
    requests = []
    for sink in (None, DailyFiles(tmp_path, zone=UTC)):
        async with MemoryStore() as store:
            talk = await opened(store.log(), sink, write=Writer())
            requests.append([texts(await talk.go(*chat(nth))) for nth in range(24)])
            await talk.settled()
            assert await talk.folds() == (1, 1, 0)
            await talk.session.close()
    without, remembered = requests
    assert remembered == without
    [notes] = (tmp_path / "memory").glob("*.md")
    assert "Trimmed Context" in notes.read_text(encoding="utf-8")


@pytest.mark.req("R011")
async def test_a_providers_own_summary_is_sent_as_it_came_and_replaces_no_fold(log):
    theirs = (
        b'{"parts":[{"content":"So far, so good.","part_kind":"compaction"}],'
        b'"kind":"response","timestamp":"2026-03-04T08:00:00Z"}'
    )
    talk = await Talk.open(log, setup(window=8_000), write=Writer())
    await talk.say(Asked("Go on from there."))
    await talk.session.answer(theirs)
    assert talk.events("session.compaction_start") == []
    await talk.go(*work(*range(10)))
    await talk.session.compact()
    request = await talk.request()
    assert theirs in request.messages
    assert len(await talk.values(FoldCompleted)) == 1


def test_the_page_names_the_four_and_what_tells_of_them():
    told = page("concepts/four-things.md")
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|", told, re.MULTILINE)
    assert rows == ["folding", "fitting", "remembering", "a provider's compaction"]
    for name in re.findall(r"`(session\.\w+)`", told):
        assert name in {event.NAME for event in events_reference.events()}


# Roles: docs/contributing/component-roles.md.

ROLES = [
    "session history facade",
    "session compaction",
    "prompt builder",
    "message preparation",
    "replacement builder",
    "boundary adjuster",
    "model-call runner",
    "compaction processor",
    "truncator",
    "truncation helpers",
    "checkpoint store",
    "event schemas",
    "replay",
    "telemetry mapping",
    "token accounting",
    "context-limit detection",
    "timeline rendering",
]


@pytest.mark.req("R144")
def test_each_role_that_the_seed_names_has_a_module_that_is_there():
    row = re.compile(r"^\| ([a-z][a-z -]+) \| .+ \| (.+) \|$", re.MULTILINE)
    rows = row.findall(page("contributing/component-roles.md"))
    found = {role: re.findall(r"`(refold[\w.]+)`", here) for role, here in rows if "`" in here}
    assert list(found) == ROLES
    for modules in found.values():
        assert modules
        for module in modules:
            assert importlib.import_module(module).__doc__


# Peers and principles: docs/start/how-it-compares.md.


@pytest.mark.req("R147")
@pytest.mark.parametrize(
    ("peer", "facts"),
    [
        ("Aider", ["left out", "a token threshold", "its main model", "`/clear`"]),
        ("Codex", ["cut", "a token threshold", "its main model", "none"]),
        (
            "Gemini CLI",
            ["masked to disk, and cut", "a token threshold, 50 %", "two passes", "`/compress`"],
        ),
    ],
)
def test_the_page_tells_the_peer_facts_of_the_seeds(peer, facts):
    _, _, told = page("start/how-it-compares.md").partition("and how you request a summary")
    [row] = re.findall(rf"^\| {peer} \| (.+) \|$", told.partition("##")[0], re.MULTILINE)
    for fact, cell in zip(facts, row.split(" | "), strict=True):
        assert fact in cell


@pytest.mark.req("R147")
def test_what_is_said_of_others_is_dated_and_has_versions():
    told = page("start/how-it-compares.md")
    for fact in ("August 2026", "harness 0.62", "LangChain 1.4"):
        assert fact in told
    for peer in ("OpenAI Agents", "Letta", "OpenHands SDK", "Cline", "Goose", "opencode", "pi"):
        assert peer in told


async def test_keep_the_recent_and_fold_the_old(log):
    talk = await Talk.open(log, setup(window=4_000), write=Writer())
    await talk.go(*work(*range(30)))
    last = texts(await talk.go(*chat(99)))
    assert (await talk.folds())[1] >= 1
    assert any("part_29" in text for text in last)
    assert not any("part_3." in text for text in last)
    assert any(WORDS in text for text in last)


async def test_trim_tool_output_without_a_fold(log):
    always = {"rewrite": {"sticky": False}, "fold": {"breadcrumb": False}}
    trimming = changed(BALANCED, trim={"max_chars": 100}, **always)
    talk = await Talk.open(log, setup(trimming, window=1_000_000))
    await talk.go(*work(0, size=4_000))
    await talk.say(Asked("And now?"))
    shown = texts(await talk.request())
    assert max(map(len, shown)) < 400
    assert any(b"x" * 4_000 in entry.body for entry in await log.read("s"))
    assert await talk.folds() == (0, 0, 0)


def test_the_model_that_summarizes_can_be_chosen_in_every_profile():
    for profile in PROFILES.values():
        chosen = changed(profile, fold={"writer": "model"}, summarizer="openai:gpt-4o-mini")
        assert chosen.summarizer == "openai:gpt-4o-mini"


def test_the_page_names_the_four_principles():
    _, _, told = page("start/how-it-compares.md").partition("## What they have in common")
    rows = re.findall(r"^\| ([A-Z].+?)\. \| .+ \|$", told, re.MULTILINE)
    assert rows == [
        "Keep recent messages, compact old ones",
        "Let a model summarize",
        "Trim tool output",
        "Let the model be chosen",
    ]


# The events: docs/reference/events.md.


def test_the_reference_of_events_is_made_of_the_events():
    assert events_reference.PAGE.read_text(encoding="utf-8") == events_reference.render()


def test_every_event_is_in_the_reference():
    assert {type(sample) for sample in events_reference.SAMPLES} == events_reference.events()
