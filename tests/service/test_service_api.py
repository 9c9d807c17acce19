"""The API: sessions, entries, requests, folds, pins, search and usage."""

import asyncio
import json
from dataclasses import replace
from uuid import uuid4

import pytest
from api_serving import API, FORMAT, LARGE, Serving, all_of, at, raw, said, serving, talked

from refold.log import Author, FoldCompleted, FoldStarted, Message, Note, Opened, Span
from refold.models import ModelSettings
from refold.recall.text import rebuilt
from refold.service.api import sessions


@pytest.fixture
async def service():
    async with serving() as one:
        yield one


@pytest.fixture
async def api(service):
    async with service.client(await service.key("acme")) as client:
        yield client


async def test_sessions_are_opened_listed_found_titled_and_forked(api):
    for name in ("one", "two", "three"):
        made = await api.post(f"{API}/sessions", json={"name": name, "format": FORMAT})
        assert made.status_code == 201, made.text
    again = await api.post(f"{API}/sessions", json={"name": "one", "format": FORMAT})
    assert (again.status_code, again.json()["code"]) == (409, "session-exists")
    await api.put(at("two", "/title"), json={"title": "About parcels"})
    page = (await api.get(f"{API}/sessions", params={"limit": 2})).json()
    rest = (await api.get(f"{API}/sessions", params={"limit": 2, "page": page["next"]})).json()
    names = [one["name"] for one in page["sessions"] + rest["sessions"]]
    assert names == ["two", "three", "one"]
    assert rest["next"] is None
    found = (await api.get(f"{API}/sessions", params={"search": "parcels"})).json()["sessions"]
    assert [(one["name"], one["title"]) for one in found] == [("two", "About parcels")]
    fork = await api.post(at("two", "/fork"), json={"name": "four", "at": 1})
    assert (fork.status_code, fork.json()["forked_from"], fork.json()["title"]) == (
        201,
        "two",
        None,
    )


async def test_entries_come_in_pages_byte_for_byte(service, api):
    log, author = service.store.log("acme"), Author()
    odd = (
        rb'{ "role": "user",  "content": "\ud800 \u0000", "x": 1e400, "y": [1.0, 10000000000000] }'
    )
    large = raw(said("user", LARGE))
    values = [Opened(FORMAT, "balanced"), Message(odd), Note("hm"), Message(large)]
    await log.append("s", [author.draft(one) for one in values], expected=0)
    first = await api.get(at("s", "/entries"), params={"limit": 2})
    assert b'"body":' + odd + b"}" in first.content
    page = first.json()
    assert ([one["seq"] for one in page["entries"]], page["next"], page["head"]) == ([1, 2], 2, 4)
    rest = (await api.get(at("s", "/entries"), params={"after": page["next"]})).json()
    assert [one["kind"] for one in rest["entries"]] == ["note", "message"]
    assert rest["entries"][1]["body"]["content"] == LARGE
    assert rest["next"] is None
    lean = (await api.get(at("s", "/entries"), params={"kind": "message", "whole": False})).json()
    assert [one["seq"] for one in lean["entries"]] == [2, 4]
    (hash_,) = lean["entries"][1]["left_out"]
    artifact = await api.get(f"{API}/artifacts/{hash_}")
    assert artifact.text == LARGE
    assert artifact.headers["content-type"].startswith("text/plain")
    assert artifact.headers["content-disposition"].startswith("attachment")


async def test_a_page_looks_through_only_so_many_entries(service, api, monkeypatch):
    monkeypatch.setattr(sessions, "_MAX_SCANNED", 3)
    log, author = service.store.log("acme"), Author()
    values = [Opened(FORMAT, "balanced"), *[Note("x")] * 5, Message(raw(said("user", "hi")))]
    await log.append("s", [author.draft(one) for one in values], expected=0)
    found, after, pages = [], 0, 0
    while after is not None:
        params = {"kind": "message", "after": after}
        page = (await api.get(at("s", "/entries"), params=params)).json()
        found += [one["seq"] for one in page["entries"]]
        after, pages = page["next"], pages + 1
    assert (found, pages) == ([7], 3)


async def test_a_request_is_rebuilt_and_explained_as_it_was(service, api):
    facts = await talked(service, "acme", "s")
    listed = (await api.get(at("s", "/requests"))).json()["requests"]
    assert [one["state"] for one in listed] == ["rebuildable"] * 4
    assert listed[-1]["seq"] == facts.seq
    log = service.store.log("acme")
    for one in listed:
        view = (await api.get(at("s", f"/requests/{one['seq']}"))).json()
        sent = [json.loads(payload) for payload in await rebuilt(log, "s", one["seq"])]
        assert view["messages"] == sent
        told = view["explanation"]
        kept = [line for line in told["messages"] if line["reason"] is None]
        assert len(kept) + len(told["inserts"]) == len(sent) == told["request"]["messages"]
        assert told["session"]["head"] < one["seq"]
    first = (await api.get(at("s", f"/requests/{listed[0]['seq']}"))).json()
    assert [line["seq"] for line in first["explanation"]["messages"]] == [2]
    reasons = {line["reason"] for line in told["messages"]}
    assert "folded" in reasons
    assert (await api.get(at("s", "/requests/2"))).status_code == 422


async def test_a_request_whose_words_were_forgotten_is_gone(service, api):
    facts = await talked(service, "acme", "s")
    gone = await api.post(at("s", "/forget"), json={"first": facts.said, "last": facts.said})
    assert gone.json()["entries"] == 1
    listed = (await api.get(at("s", "/requests"))).json()["requests"]
    assert listed[0]["state"] == "unrebuildable"
    answer = await api.get(at("s", f"/requests/{listed[0]['seq']}"))
    assert (answer.status_code, answer.json()["code"]) == (410, "unrebuildable")
    everything = (await all_of(service.store, "acme"))["s"]
    assert "Where is parcel 0" not in everything


async def test_a_session_is_forgotten_for_good(service, api):
    await api.post(f"{API}/sessions", json={"name": "s", "format": FORMAT, "title": "Gone soon"})
    gone = (await api.delete(at("s"))).json()
    assert gone == {"session": "s", "entries": 1, "derived": 0, "to_scrub": []}
    assert (await api.get(at("s"))).json()["code"] == "session-forgotten"
    assert (await api.get(f"{API}/sessions")).json() == {"sessions": [], "next": None}
    assert await all_of(service.store, "acme") == {}


async def test_what_was_forgotten_is_in_no_session_begun_anew_by_its_name(service, api):
    other = Serving(store=service.store)  # as another process has it
    new = {"name": "s", "format": FORMAT}
    old = {"messages": [said("user", "the old secret")]}
    await api.post(f"{API}/sessions", json=new)
    await api.post(at("s", "/messages"), json=old)
    async with other.state.sessions.using("acme", "s") as talk:
        assert b"the old secret" in talk.messages[0]
    await api.delete(at("s"))
    await api.post(f"{API}/sessions", json=new)
    await api.post(at("s", "/messages"), json={"messages": [said("user", "hello")] * 3})
    for one in (service, other):
        async with one.state.sessions.using("acme", "s") as talk:
            assert [json.loads(message)["content"] for message in talk.messages] == ["hello"] * 3
    await other.state.sessions.close()


@pytest.mark.req("R139")
async def test_a_session_opened_over_http_compacts_too(api):
    await api.post(f"{API}/sessions", json={"name": "remote", "format": FORMAT})
    for nth in range(6):
        both = [said("user", f"Question {nth}"), said("assistant", f"Answer {nth} " * 50)]
        done = await api.post(at("remote", "/messages"), json={"messages": both})
        assert done.status_code == 201, done.text
    seen = (await api.get(at("remote", "/folds/preview"))).json()
    assert seen["before"] > seen["after"]
    made = await api.post(at("remote", "/folds"), json={"focus": "the answers"})
    assert (made.status_code, made.json()["state"]) == (200, "completed"), made.text
    assert made.json()["messages_removed"] == seen["messages"] > 0
    (fold,) = (await api.get(at("remote", "/folds"))).json()["folds"]
    assert (fold["state"], fold["fold"]) == ("stands", made.json()["fold"])
    span = {"first": fold["spans"][0]["first"], "last": fold["spans"][0]["first"]}
    assert (await api.post(at("remote", "/unfold"), json=span)).status_code == 200
    (left,) = (await api.get(at("remote", "/folds"))).json()["folds"]
    assert left["spans"][0]["first"] > span["first"]
    where = at("remote", f"/folds/{left['fold']}/summary")
    edited = await api.put(where, json={"text": "The answers are 1 to 4."})
    assert edited.json()["by"] == "hand"
    assert "these words of the user" in edited.json()["text"]
    assert edited.json()["spans"] == left["spans"]
    assert (await api.put(where, json={"text": "Again."})).status_code == 422
    (left,) = (await api.get(at("remote", "/folds"))).json()["folds"]
    assert left["fold"] == edited.json()["fold"]
    undone = await api.post(at("remote", f"/folds/{left['fold']}/undo"))
    assert undone.json()["folds"] == 0
    again = await api.post(at("remote", f"/folds/{left['fold']}/undo"))
    assert (again.status_code, again.json()["detail"]) == (422, "There is no such fold in effect.")


async def test_a_fold_that_nobody_waits_for_can_be_given_up():
    go = asyncio.Event()

    async def write(*_):
        await go.wait()
        raise RuntimeError

    async with serving(write=write) as service:
        key = await service.key("acme")
        async with service.client(key) as api:
            await api.post(f"{API}/sessions", json={"name": "s", "format": FORMAT})
            both = [said("user", "Hello"), said("assistant", "Good day")] * 4
            await api.post(at("s", "/messages"), json={"messages": both})
            begun = await api.post(at("s", "/folds"), json={"wait": False})
            assert (begun.status_code, begun.json()["state"]) == (202, "under way")
            second = await api.post(at("s", "/folds"), json={"wait": False})
            assert (second.status_code, second.json()["code"]) == (409, "fold-under-way")
            fold = begun.json()["fold"]
            assert (await api.get(at("s"))).json()["under_way"] == fold
            (listed,) = (await api.get(at("s", "/folds"))).json()["folds"]
            assert (listed["state"], listed["fold"]) == ("under way", fold)
            more = {"messages": [said("user", "Are you there?")]}
            assert (await api.post(at("s", "/messages"), json=more)).status_code == 201
            done = await api.post(at("s", f"/folds/{fold}/cancel"))
            assert done.json() == {"fold": fold, "cancelled": True}
            assert (await api.post(at("s", f"/folds/{fold}/cancel"))).json()["cancelled"] is False
            assert (await api.get(at("s"))).json()["under_way"] is None


async def test_the_view_is_turned_back_and_begun_anew_and_nothing_is_lost(api):
    await api.post(f"{API}/sessions", json={"name": "s", "format": FORMAT})
    talk = {"messages": [said("user", "one"), said("assistant", "two"), said("user", "three")]}
    assert (await api.post(at("s", "/messages"), json=talk)).json() == {"first": 2, "last": 4}
    assert (await api.post(at("s", "/rewind"), json={"to": 3})).json()["entries"] == 5
    assert (await api.post(at("s", "/rewind"), json={"to": 99})).status_code == 422
    assert (await api.post(at("s", "/clear"))).json()["entries"] == 6
    kinds = [one["kind"] for one in (await api.get(at("s", "/entries"))).json()["entries"]]
    assert kinds == ["session", "message", "message", "message", "rewind", "clear"]


async def test_pins_are_set_and_let_go(api):
    await api.post(f"{API}/sessions", json={"name": "s", "format": FORMAT})
    await api.post(at("s", "/messages"), json={"messages": [said("user", "keep this")]})
    for _ in range(2):
        pinned = (await api.put(at("s", "/pins/2/0"))).json()
        assert pinned["pins"] == [{"seq": 2, "index": 0, "watched": False}]
    assert (await api.get(at("s"))).json()["entries"] == 3
    for nowhere in ("/pins/2/9", "/pins/1/0", "/pins/77/0"):
        assert (await api.put(at("s", nowhere))).status_code == 422
    for _ in range(2):
        assert (await api.delete(at("s", "/pins/2/0"))).json() == {"pins": []}


async def test_messages_of_no_known_form_are_refused_whole(api):
    await api.post(f"{API}/sessions", json={"name": "s", "format": FORMAT})
    for bad in ({"role": 3}, {"role": "user", "content": 7}, {}):
        both = {"messages": [said("user", "good"), bad]}
        answer = await api.post(at("s", "/messages"), json=both)
        assert answer.status_code == 422, answer.text
    nan = b'{"messages": [{"role": "user", "content": "x", "x": NaN}]}'
    headers = {"Content-Type": "application/json"}
    answer = await api.post(at("s", "/messages"), content=nan, headers=headers)
    assert answer.status_code == 422
    assert (await api.get(at("s"))).json()["entries"] == 1


async def test_search_finds_entries_and_sessions(service, api):
    await talked(service, "acme", "s")
    await talked(service, "other", "o", words="parcel")
    found = (await api.get(f"{API}/search", params={"query": "parcel"})).json()["found"]
    assert found
    assert {one["session"] for one in found} == {"s"}
    there = (await api.get(f"{API}/search/sessions", params={"query": "parcel"})).json()["found"]
    assert [one["session"]["name"] for one in there] == ["s"]
    gone = await api.get(f"{API}/search", params={"query": "parcel", "session": "o"})
    assert gone.status_code == 404


async def test_usage_is_added_up_by_session_and_by_day(service, api):
    await talked(service, "acme", "s", turns=4)
    await talked(service, "acme", "t", turns=3)
    await talked(service, "other", "s", turns=5)
    await api.post(at("s", "/fork"), json={"name": "fork"})
    own = (await api.get(at("s", "/usage"))).json()
    assert (own["requests"], own["input"], own["output"]) == (4, 400, 40)
    days = (await api.get(f"{API}/usage", params={"days": 3})).json()
    assert days["whole"] is True
    assert len(days["days"]) == 3
    assert sum(one["requests"] for one in days["days"]) == 7
    assert sum(one["input"] for one in days["days"]) == 700


async def test_a_receipt_of_a_session_and_of_the_tenant(service, api):
    service.state.settings = replace(service.state.settings, models={})
    await talked(service, "acme", "s", turns=4)
    await talked(service, "acme", "t", turns=3)
    await talked(service, "other", "s", turns=5)
    await api.post(at("s", "/fork"), json={"name": "fork"})
    own = (await api.get(at("s", "/receipt"))).json()
    assert (own["session"], own["requests"], own["input"], own["output"]) == ("s", 4, 400, 40)
    assert own["debt"] == pytest.approx(own["paid"] - own["whole"])
    always = (await api.get(at("s", "/receipt"), params={"lifetime": 0})).json()
    assert always["paid"] == own["paid"]
    both = (await api.get(f"{API}/receipt", params={"days": 3})).json()
    assert (both["requests"], both["sessions"], both["complete"]) == (7, 2, True)
    by_reading = {"days": 3, "lifetime": 299.9}
    assert (await api.get(f"{API}/receipt", params=by_reading)).json()["paid"] == both["paid"]
    assert (await api.get(at("never", "/receipt"))).status_code == 404
    assert (await api.get(at("s", "/receipt"), params={"lifetime": -1})).status_code == 422


async def test_a_summary_costs_what_the_settings_say_its_model_costs(service, api):
    await talked(service, "acme", "s")
    log, fold, span = service.store.log("acme"), uuid4(), (Span(2, 2),)
    summary = {"by": "local:house-model", "usage": {"input": 1_000_000, "output": 0, "calls": 1}}
    values = (FoldStarted(fold, span, "manual"), FoldCompleted(fold, span, summary))
    await log.append("s", [Author().draft(value) for value in values], expected=None)
    before = (await api.get(at("s", "/usage"))).json()
    assert (before["summaries"], before["unpriced"] > 0) == (1, True)
    priced = {"local:house-model": ModelSettings(input_price=3.0, output_price=9.0)}
    service.state.settings = replace(service.state.settings, models=priced)
    after = (await api.get(at("s", "/usage"))).json()
    assert after["cost"] == pytest.approx(before["cost"] + 3.0)
    assert after["unpriced"] == before["unpriced"] - 1


async def test_a_fold_of_a_session_that_is_not_there(api):
    for method, rest in (
        ("POST", "/folds"),
        ("GET", "/folds/preview"),
        ("POST", f"/folds/{uuid4()}/cancel"),
        ("POST", f"/folds/{uuid4()}/undo"),
        ("PUT", f"/folds/{uuid4()}/summary"),
    ):
        body = {"text": "words"} if method == "PUT" else {}
        answer = await api.request(method, at("never", rest), json=body)
        assert (answer.status_code, answer.json()["code"]) == (404, "session-not-found")
