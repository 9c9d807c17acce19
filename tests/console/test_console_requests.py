"""A request: as it was sent, each part with its reason, what was left out, and how to send it."""

import html
import json
import re
import subprocess

import httpx2
import pytest
from api_serving import FORMAT, raw, said, talked
from console_world import CONSOLE, ConsoleWorld, console

from refold.console import requests
from refold.gateway.sessions import Opening
from refold.log import Span
from refold.models.experience import Setup
from refold.recall.text import rebuilt
from refold.service.callers import Limits
from refold.testing.upstream import Reply, ScriptedUpstream
from refold.view.plan import Omission
from refold.view.profiles import PROFILES

PART = {"HX-Request": "true"}
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"


def at(session, rest: object = ""):
    return f"{CONSOLE}/sessions/{session}/requests/{rest}"


def text_of(answer):
    return html.unescape(re.sub(r"<[^>]+>|\s+", " ", answer.text))


def sent(answer):
    """The messages that a page shows as sent: entries of the log, and inserts."""
    return re.findall(r'<article [^>]*id="([ei]\d+)"', answer.text)


async def test_a_request_shows_what_was_sent_and_what_was_left_out():
    async with console(local=True) as world:
        browser, facts = await world.opened(), await talked(world, "default", "talk", turns=4)
        page = await browser.get(at("talk", facts.seq))
        assert page.status_code == 200
        shown, left = page.text.split('id="left"')
        assert sent(page) == ["e2", "e4", "i0", "e14", "e16", "e20"]
        assert len(sent(page)) == len(await rebuilt(world.store.log("default"), "talk", facts.seq))
        assert "stands for what was folded" in shown
        assert "entries 5\u201313" in left
        assert "a summary stands for it" in left
        (where,) = re.findall(r'hx-get="([^"]*/left-out[^"]*)"', page.text)
        out = await browser.get(html.unescape(where), headers=PART)
        assert sent(out) == ["e6", "e8", "e10", "e12"]
        assert "Where is parcel 1 of default?" in out.text


async def test_an_earlier_request_is_shown_as_it_was_then():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        page = await browser.get(at("talk", 11))
        assert sent(page) == ["e2", "e4", "e6", "e8", "e10"]
        assert "Nothing: everything up to entry 10 was sent." in text_of(page)
        assert 'href="/console/sessions/talk/requests/7" rel="prev"' in page.text
        assert 'href="/console/sessions/talk/requests/15" rel="next"' in page.text
        assert "/requests/11/since/7" in page.text


async def test_a_part_that_was_changed_shows_both_texts():
    async with console(local=True) as world:
        browser = await world.opened()
        large = "a line of output\n" * 3_000
        call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        setup = Setup.of("test:model", PROFILES["co-cli"])
        async with world.state.sessions.lease("default", "s", Opening(FORMAT, setup)) as kept:
            talk = kept.session
            for nth in range(4):
                await talk.say(raw(said("user", f"read {nth}")))
                await talk.request()
                mine = {**call, "id": f"c{nth}"}
                await talk.answer(raw(said("assistant", None, tool_calls=[mine])))
                await talk.say(raw(said("tool", f"{nth} {large}", tool_call_id=f"c{nth}")))
                await talk.request()
                await talk.answer(raw(said("assistant", "read")))
            await talk.say(raw(said("user", "and?")))
            await talk.request()
            record = talk.record
        page = await browser.get(at("s", record))
        assert "a long tool result of an earlier turn, cut" in page.text
        assert "What is sent instead" in page.text
        assert re.search(r"\d+ of [\d,]+ tokens", text_of(page))


@pytest.mark.parametrize("seq", [2, 99, 0, "x"])
async def test_what_is_no_request_is_said(seq):
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=1)
        for rest in ("", "/body.json", "/curl", "/left-out?first=1&last=2", "/inserts/0"):
            answer = await browser.get(at("talk", f"{seq}{rest}"))
            assert answer.status_code == 422
            assert answer.headers["content-type"].startswith("text/html")


async def test_a_request_that_cannot_be_rebuilt_is_said():
    async with console(local=True) as world:
        browser, facts = await world.opened(), await talked(world, "default", "talk", turns=2)
        await world.store.log("default").forget("talk", Span(2, 2))
        answer = await browser.get(at("talk", facts.seq))
        assert answer.status_code == 200  # other pages lead to it
        assert "forgotten" in answer.text
        assert (await browser.get(at("talk", f"{facts.seq}/body.json"))).status_code == 410


async def test_more_messages_come_page_by_page(monkeypatch):
    monkeypatch.setattr(requests, "PAGE", 3)
    async with console(local=True) as world:
        browser, facts = await world.opened(), await talked(world, "default", "talk", turns=4)
        page = await browser.get(at("talk", facts.seq))
        seen = sent(page)
        while found := re.search(r'hx-get="([^"]*\?offset=\d+)"', page.text):
            page = await browser.get(found[1], headers=PART)
            assert "<html" not in page.text
            seen += sent(page)
        assert seen == ["e2", "e4", "i0", "e14", "e16", "e20"]


async def test_a_request_reads_what_was_sent_and_no_more(monkeypatch):
    async with console(local=True) as world:
        browser, facts = await world.opened(), await talked(world, "default", "talk", turns=60)
        log, rows = world.store.log("default"), []
        original = type(log).read

        async def read(self, session, span=None, **how):
            found = await original(self, session, span, **how)
            rows.extend(entry.seq for entry in found)
            return found

        monkeypatch.setattr(type(log), "read", read)
        page = await browser.get(at("talk", facts.seq))
        assert page.status_code == 200
        folded = set(range(30, 200)) & {*rows}
        assert {seq for seq in rows if seq < facts.seq - 510} <= {*range(1, 20)} | folded


# Through the gateway.


class GatewayWorld(ConsoleWorld):
    """The console beside a gateway before a scripted upstream."""

    def __init__(self, reply=lambda _: Reply("Hello there."), **how):
        super().__init__(local=True, **how)
        self.upstream = ScriptedUpstream(reply)
        client = httpx2.AsyncClient(transport=httpx2.ASGITransport(self.upstream))
        self.state.gateway._upstreams.client = client
        self.state.limits = Limits(self.state.settings.serve.limits)


@pytest.fixture
async def asked():
    world = GatewayWorld()
    async with world.state:
        yield world


async def ask(world, path, body, **headers):
    client = world.browser("http://127.0.0.1:8790")
    answer = await client.post(path, content=json.dumps(body).encode(), headers=headers)
    assert answer.status_code == 200, answer.text
    session, _, seq = answer.headers["refold-request"].rpartition(":")
    return session, int(seq)


TOOL = {"type": "function", "function": {"name": "find_parcel", "parameters": {}}}
BODY = {
    "model": "some-model",
    "temperature": 0.25,
    "tools": [TOOL],
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi 'x'"}],
}


async def test_a_request_of_the_gateway_is_shown_and_sent_again_byte_for_byte(asked, tmp_path):
    headers = {"authorization": "Bearer sk-very-secret", "user-agent": "my-agent/1"}
    session, seq = await ask(asked, CHAT, BODY, **headers)
    browser = await asked.opened()
    page = await browser.get(at(session, seq))
    words = text_of(page)
    assert "Be brief." in words
    assert "find_parcel" in words
    assert '"temperature": 0.25' in words
    assert "my-agent/1" in words
    assert "sk-very-secret" not in page.text
    assert "byte for byte" in words
    saved = await browser.get(at(session, f"{seq}/body.json"))
    assert saved.content == json.dumps(BODY).encode()
    assert saved.headers["content-disposition"] == f'attachment; filename="request-{seq}.json"'
    command = await browser.get(at(session, f"{seq}/curl"), headers=PART)
    shown = html.unescape(re.findall(r"<pre[^>]*>(.*?)</pre>", command.text, re.DOTALL)[0])
    assert "sk-very-secret" not in shown
    # What a shell makes of it is what was sent.
    fake = tmp_path / "curl"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\necho ---\ncat\n')
    fake.chmod(0o755)
    done = subprocess.run(  # noqa: ASYNC221 - nothing else runs
        ["sh", "-c", shown],
        env={"PATH": f"{tmp_path}:/bin:/usr/bin", "BASE_URL": "http://up/v1", "API_KEY": "KEY"},
        capture_output=True,
        check=True,
    )
    arguments, _, body = done.stdout.partition(b"---\n")
    assert body == json.dumps(BODY).encode() + b"\n"
    assert b"http://up/v1/chat/completions\n" in arguments
    assert b"Authorization: Bearer KEY\n" in arguments


async def test_what_cannot_be_seen_is_copied_as_escapes(asked):
    text = "safe\u202eexe \u200b\x9b31m \U000e0041 é 北京"
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    content = json.dumps(body, ensure_ascii=False, indent=1).replace("\n", "\r\n").encode()
    client = asked.browser("http://127.0.0.1:8790")
    answer = await client.post(CHAT, content=content)
    session, _, seq = answer.headers["refold-request"].rpartition(":")
    command = await (await asked.opened()).get(at(session, f"{seq}/curl"), headers=PART)
    shown = html.unescape(re.findall(r"<pre[^>]*>(.*?)</pre>", command.text, re.DOTALL)[0])
    copied = shown.partition("<<'BODY'\n")[2].removesuffix("\nBODY")
    assert json.loads(copied)["messages"] == body["messages"]
    assert "é 北京" in copied
    assert re.search("[\u200b\u202e\x9b\r\U000e0041]", copied) is None


async def test_a_command_for_anthropic_has_its_headers(asked):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    version = {"anthropic-version": "2023-06-01'; rm -rf /", "x-api-key": "sk-secret"}
    session, seq = await ask(asked, MESSAGES, body, **version)
    command = await (await asked.opened()).get(at(session, f"{seq}/curl"), headers=PART)
    shown = html.unescape(command.text)
    assert '-H "x-api-key: $API_KEY"' in shown
    assert "'anthropic-version: 2023-06-01'\"'\"'; rm -rf /'" in shown
    assert "sk-secret" not in shown


def test_runs_that_follow_one_another_for_one_reason_are_one():
    runs = [
        Omission(Span(7, 9), "folded"),
        Omission(Span(2, 3), "folded"),
        Omission(Span(4, 6), "folded"),
        Omission(Span(10, 10), "window"),
        Omission(Span(12, 13), "window"),
    ]
    assert requests.merged(runs) == [
        Omission(Span(2, 9), "folded"),
        Omission(Span(10, 10), "window"),
        Omission(Span(12, 13), "window"),
    ]
