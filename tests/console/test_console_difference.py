"""The difference of two requests: each change with its reason, and where the cache prefix broke."""

import html
import re
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from api_serving import FORMAT, SETUP, raw, said, talked
from console_world import CONSOLE, console
from test_console_requests import BODY, CHAT, GatewayWorld, ask

from refold.console.difference import Sent, _around, _break, _common, _joined, _steps, difference
from refold.gateway.sessions import Opening
from refold.models import ModelSettings
from refold.models.experience import Setup
from refold.session import Usage
from refold.view.profiles import PROFILES

PRICED = {
    "model": ModelSettings(
        input_price=10, output_price=30, cache_read_price=1, cache_write_price=12.5
    )
}


def at(session, later, earlier):
    return f"{CONSOLE}/sessions/{session}/requests/{later}/since/{earlier}"


def text_of(answer):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.text)).split())


def kinds(found):
    return [step.kind for step in found.steps]


async def test_a_request_that_only_adds_breaks_nothing():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=3)
        page = await browser.get(at("talk", 11, 7))
        assert "Nothing broke" in page.text
        words = text_of(page)
        assert "+2 added" in words
        assert "3 messages are the same" in words
        assert "said since" in words


async def test_a_fold_drops_adds_and_breaks_the_prefix_where_it_stands():
    async with console(local=True) as world:
        browser, facts = await world.opened(), await talked(world, "default", "talk", turns=4)
        log = world.store.log("default")
        found: Any = await difference(log, "talk", 15, facts.seq, {})
        assert found.counts == {"added": 3, "dropped": 4, "changed": 0, "moved": 0}
        assert kinds(found) == ["same", *["dropped"] * 4, "added", "same", "added", "added"]
        assert found.steps[0].messages == 2
        assert {step.why for step in found.steps[1:5]} == {"folded: a summary stands for it"}
        assert found.steps[5].why == "summary: stands for what was folded"
        assert (found.broken.place, found.broken.same) == ("message", 2)
        page = await browser.get(at("talk", facts.seq, 15))
        assert "The prefix broke after 2 messages" in text_of(page)


async def test_the_byte_of_the_break_is_the_first_that_differs():
    async with console(local=True) as world:
        facts = await talked(world, "default", "talk", turns=4)
        log = world.store.log("default")
        found: Any = await difference(log, "talk", 15, facts.seq, {})
        old, new = (
            b"[" + b",".join(past.sent.messages) + b"]" for past in (found.before, found.after)
        )
        assert old[: found.broken.byte] == new[: found.broken.byte]
        assert old[found.broken.byte] != new[found.broken.byte]


async def test_what_a_break_costs_is_what_the_cache_would_have_saved():
    async with console(local=True) as world:
        facts = await talked(world, "default", "talk", turns=4)
        log = world.store.log("default")
        found: Any = await difference(log, "talk", 15, facts.seq, PRICED)
        assert found.broken.tokens == 17  # the prompt behind the summary
        assert found.broken.dollars == pytest.approx(17 * 9 / 1e6)
        assert (await difference(log, "talk", 15, facts.seq, {})).broken.dollars is None
        async with world.state.sessions.lease("default", "talk", Opening(FORMAT, SETUP)) as kept:
            usage = Usage(6_000, 10, 0, 6_000)
            await kept.session.answer(raw(said("assistant", "ok")), usage=usage)
        written = await difference(log, "talk", 15, facts.seq, PRICED)
        assert written.broken.dollars == pytest.approx(17 * 11.5 / 1e6)


async def test_a_result_that_was_cut_shows_both_texts_and_why():
    async with console(local=True) as world:
        large = "a line of output\n" * 3_000
        call = {"type": "function", "function": {"name": "read", "arguments": "{}"}}
        setup, records = Setup.of("test:model", PROFILES["co-cli"]), []
        async with world.state.sessions.lease("default", "s", Opening(FORMAT, setup)) as kept:
            talk = kept.session
            for nth in range(8):
                await talk.say(raw(said("user", f"read {nth}")))
                await talk.request()
                mine = {**call, "id": f"c{nth}"}
                await talk.answer(raw(said("assistant", None, tool_calls=[mine])))
                await talk.say(raw(said("tool", f"{nth} {large}", tool_call_id=f"c{nth}")))
                await talk.request()
                records.append(talk.record)
                await talk.answer(raw(said("assistant", "read")))
        log = world.store.log("default")
        found: Any = None
        for earlier, later in pairwise(records):
            found = await difference(log, "s", earlier, later, {})
            if found.counts["changed"]:
                break
        step = next(step for step in found.steps if step.kind == "changed")
        assert "cut" in step.why
        assert step.before != step.after
        assert step.tokens < 0
        page = await (await world.opened()).get(at("s", later, earlier))
        assert page.status_code == 200
        assert "before" in page.text
        assert "now" in page.text


@pytest.mark.parametrize(
    ("change", "words", "place"),
    [
        ({"model": "other"}, "Another model", "model"),
        ({"tools": []}, "The tools changed", "tools"),
        ({"messages": [said("system", "Be long."), *BODY["messages"][1:]]}, "instructions", "inst"),
        ({"temperature": 1}, "Nothing broke", ""),
    ],
)
async def test_what_changed_besides_the_messages(change, words, place):
    world = GatewayWorld()
    async with world.state:
        session, first = await ask(world, CHAT, BODY)
        more = [said("assistant", "Hello there."), said("user", "on")]
        body = {**BODY, **change}
        body["messages"] = [*body["messages"], *more]
        again, second = await ask(world, CHAT, body)
        assert again == session
        browser = await world.opened()
        page = await browser.get(at(session, second, first))
        assert words in text_of(page)
        assert "Besides the messages" in page.text
        found: Any = await difference(world.store.log(), session, first, second, {})
        assert found.broken.place.startswith(place)
        if place:
            assert found.broken.tokens > 0
        assert found.beside


@pytest.mark.parametrize(("later", "earlier"), [(11, 11), (7, 11), (2, 1), (11, 2)])
async def test_what_cannot_be_compared_is_said(later, earlier):
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=3)
        answer = await browser.get(at("talk", later, earlier))
        assert answer.status_code == 422


def message(key, text="", tokens=5):
    return Sent(key, key, f"{key} {text}".encode(), "user", text, tokens)


def past(head=100, model="m") -> Any:
    return SimpleNamespace(
        lens=SimpleNamespace(plan=None),
        explanation=SimpleNamespace(head=head, account=SimpleNamespace(system=7, tools=11)),
        sent=SimpleNamespace(extras={}),
        record=SimpleNamespace(model=model),
        neighbors=SimpleNamespace(used=None),
    )


def test_a_message_in_another_place_has_moved():
    old = [message(1), message(2), message(3), message(4)]
    new = [message(1), message(3), message(4), message(2)]
    steps = [*_steps(past(), past(), old, new)]
    assert [(step.kind, step.seq) for step in steps] == [
        ("same", 1),
        ("same", 3),
        ("same", 4),
        ("moved", 2),
    ]
    assert [step.kind for step in _joined(steps)] == ["same", "moved"]
    broken = _break(past(), past(), old, new, PRICED)
    assert (broken.place, broken.same, broken.tokens) == ("message", 1, 15)


def test_one_changed_message_leaves_its_neighbors_the_same():
    old = [message(1), message(2, "a"), message(3)]
    new = [message(1), message(2, "b"), message(3)]
    assert [step.kind for step in _steps(past(), past(), old, new)] == ["same", "changed", "same"]


def test_another_model_has_none_of_it_in_its_cache():
    broken = _break(past(), past(model="n"), [message(1)], [message(1)], PRICED)
    assert (broken.place, broken.tokens) == ("model", 5 + 7 + 11)


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [("", "", 0), ("a", "", 0), ("abc", "abd", 2), ("abc", "abc", 3), ("abc", "abcd", 3)],
)
def test_how_much_two_texts_have_in_common(first, second, common):
    assert _common(first, second) == common
    before, after = _around("x" * 500 + first, "x" * 500 + second)
    assert before.startswith("…x")
    assert len(before) < 200
    assert before.endswith(first)
    assert after.endswith(second)
