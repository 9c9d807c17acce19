"""Whatever was said stays text: on every page that can be reached, in every field that shows it."""

import asyncio
import html
import json
import re
from html.parser import HTMLParser
from urllib.parse import quote, urljoin
from uuid import uuid4

import pytest
from api_serving import FORMAT, raw, said
from console_world import CONSOLE, TEAM, console, events_of
from test_console_requests import CHAT, GatewayWorld, ask

from refold.console.pages import visible
from refold.fold.summary import (
    Claim,
    Directive,
    Finding,
    Name,
    Region,
    Report,
    Section,
    Summary,
    SummaryMessage,
    Value,
)
from refold.gateway.sessions import Opening
from refold.log import (
    Author,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    Message,
    Note,
    Opened,
    Origin,
    PartRef,
    Span,
    Titled,
)
from refold.models.experience import Setup
from refold.session import Usage
from refold.view.profiles import PROFILES

HOSTILE = {
    "script": "</pre><script>alert(1)</script><img src=x onerror=alert(2)>",
    "attribute": '"\' onmouseover=alert(1) style=color:red hx-get=//evil.example x="',
    "htmx": '<div hx-get="/console/sign-out" hx-trigger="load" hx-on:click="alert(1)"></div>',
    "template": "{{ 7 * 7 }}{% include 'base.html' %}${7*7}<%= 7 %>",
    "entity": "&lt;script&gt;&#60;script&#62;&amp;#x3c;b&#x3e;",
    "ansi": "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b]8;;http://evil.example\x07link",
    "controls": "a\x00b\x01c\x08d\x7fe\x85f\r\ndata: g\r\n\r\nh",
    "direction": "safe\u202eexe.fdp\u202c \u2066x\u2069 \u200b\u200f \u0627\u0644\u0639\u0631",
    "emoji": "👩‍👩‍👧‍👦 🏴󠁧󠁢󠁥󠁮󠁧󠁿 é̸̢͚͉̇ 北京 \ufdfd",
    "surrogate": "half \ud83d of one",
    "fold": "≡ 9,999 entries are compacted\n<details class=region open><summary>fold</summary>",
    "comment": "<!-- --><!DOCTYPE html><base href=//evil.example><meta http-equiv=refresh>",
    "svg": "<svg><a xlink:href='javascript:alert(1)'>]]></title></svg>",
    "stream": "\n\nevent: hx:release\ndata: <b>\nid: 9\n\n",
}
PLAIN = "harmless words of plain_words.py"


class Tags(HTMLParser):
    """The structure of a page: its elements and their attributes, without what they say."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.links, self.values = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.found.append((tag, *sorted(attributes)))
        self.values += attrs
        for name in ("href", "hx-get", "src"):
            if name in attributes:
                self.links.append(attributes[name])

    def handle_comment(self, data):
        self.found.append(("comment", data))

    def handle_decl(self, decl):
        self.found.append(("decl", decl))

    def handle_pi(self, data):
        self.found.append(("pi", data))

    def unknown_decl(self, data):
        self.found.append(("unknown", data))


async def crawl(browser, start=CONSOLE):
    """Every page and part of a page that can be reached, by its address."""
    found, waiting = {}, [start]
    while waiting:
        where = waiting.pop()
        if where in found:
            continue
        headers = {"HX-Request": "true"} if where.startswith("part ") else {}
        answer = await browser.get(where.removeprefix("part "), headers=headers)
        assert answer.status_code == 200, (where, answer.text)
        kind = answer.headers["content-type"].partition(";")[0]
        found[where] = answer.text if kind == "text/html" else None
        if found[where] is None:
            assert "attachment" in answer.headers["content-disposition"], where
            continue
        tags = Tags(answer.text)
        parts = [value for name, value in tags.values if name == "hx-get"]
        links = [value for name, value in tags.values if name == "href"]
        here = where.removeprefix("part ")
        waiting += [f"part {urljoin(here, each)}" for each in parts]
        waiting += [
            urljoin(here, each).partition("#")[0] for each in links if "/assets/" not in each
        ]
        assert len(found) < 500
    return found


async def hostile_session(world, name, words):
    """A session with these words in every field, through the library and by hand."""
    setup = Setup.of(name_of_model(words), PROFILES["balanced"])
    call = {"id": "c1", "type": "function", "function": {"name": tool_of(words), "arguments": ""}}
    call["function"]["arguments"] = json.dumps({"path": words})
    async with world.state.sessions.lease("default", name, Opening(FORMAT, setup)) as kept:
        talk = kept.session
        await talk.say(raw(said("system", words)), raw(said("user", words)))
        await talk.request()
        await talk.answer(raw(said("assistant", words, tool_calls=[call])), usage=Usage(50, 5, 20))
        await talk.say(raw(said("tool", words, tool_call_id="c1")))
        await talk.request()
        await talk.answer(raw(said("assistant", [{"type": "text", "text": words}])))
        for nth in range(3):
            await talk.say(raw(said("user", f"{nth} {words}")))
            await talk.request()
            await talk.answer(raw(said("assistant", f"{nth} {words}")))
        await talk.compact()
        await talk.say(raw(said("user", words)))
        await talk.request()
        head = talk.head
        await talk.say(raw(said("user", words)))
        await talk.rewind(head)
    log, author = world.store.log("default"), Author()
    odd, words = words, words.encode(errors="replace").decode()  # the log's own texts are text
    fold, failed, spans = uuid4(), uuid4(), (Span(2, 2),)
    summary = {
        "version": 1,
        "shown": [{"kind": "prompt", "text": words}],
        "text": words,
        "title": words,
        "by": words,
        "messages": 1,
        "tokens": 9,
    }
    values = [
        Titled(words),
        Note(words, {"x": words}),
        FoldStarted(failed, spans, words),
        FoldFailed(failed, words),
        FoldStarted(fold, spans, words),
        FoldCompleted(fold, spans, summary),
    ]
    drafts = [author.draft(each) for each in values]
    drafts += [author.draft(each) for each in folded_by_hand(words)]
    drafts.append(author.draft(Message(raw(said("user", odd))), scope=f"/{scope_of(words)}"))
    drafts.append(author.draft(Message(b'{"odd": %s}' % json.dumps(words).encode())))
    await log.append(name, drafts, expected=None)


def folded_by_hand(words):
    """A fold whose summary has these words wherever it can have any."""
    ref, spans = PartRef(3, 0), (Span(3, 3),)
    summary = Summary(
        words,
        title=words,
        words=words,
        sections=(
            Section(words, (Claim(words, (ref,), words, words, words, words, words),)),
            Section(words, (Claim("", (ref,), words, words),)),
        ),
        directives=(Directive(words, ref, 9),),
        ledger=(Name(words, 1.5, 3), Name(f"{words} 2", 0.5, 3, by_tools=True)),
        values=(Value(words, words, ref, words, words, ref, words),),
        regions=(Region(words, 1, words, ref),),
        messages=1,
        tokens=9,
        report=Report(checked=1, findings=(Finding("masked", words, words, (ref,)),)),
        request=words,
        shown=(SummaryMessage("prompt", words),),
        state=(words,),
    )
    name = uuid4()
    return [
        FoldStarted(name, spans, words, words),
        FoldCompleted(name, spans, summary.as_json()),
    ]


async def imported_session(world, name, words):
    """A session that another program recorded, with these words wherever it says where."""
    origin = Origin(words, words, words, words, words)
    opened = Opened(FORMAT, words, words, owner=words, origin=origin)
    values = [opened, Message(raw(said("user", words))), Titled(words), Note(words)]
    log = world.store.log("default")
    await log.append(name, [Author().draft(each) for each in values], expected=0)
    await log.fork(name, f"{name} fork", at=2)


def name_of_model(words):
    return "".join(filter(str.isprintable, words))[:60].strip() or "m"


def tool_of(words):
    return words[:60]


def scope_of(words):
    return "".join(filter(str.isprintable, words))[:40].replace("/", "_").strip() or "s"


def session_of(words):
    return f"s {''.join(filter(str.isprintable, words))[:60]}".strip()


async def structures(words):
    """The structure of every page over a session with these words, by its address."""
    async with console(local=True) as world:
        browser, name = await world.opened(), session_of(words)
        await hostile_session(world, name, words)
        text = words.encode(errors="replace").decode()
        await imported_session(world, f"{name} imported", text)
        pages = await crawl(browser)
        stream = f"/console/sessions/{quote(name, safe='')}/live?first=1"
        events = await changed_events(world, browser, stream, name, words)
        return pages, events, name


async def changed_events(world, browser, stream, name, words):
    reading = asyncio.create_task(events_of(world, browser, stream, 1))
    await asyncio.sleep(0.2)
    await world.store.log("default").append(
        name, [Author().draft(Message(raw(said("user", words))))], expected=None
    )
    (event,) = await asyncio.wait_for(reading, 90)
    return event


def normal(where, name):
    return where.replace(quote(name, safe=""), "NAME")


_plain = None


@pytest.mark.parametrize("kind", HOSTILE)
async def test_hostile_words_change_nothing_but_words(kind):
    global _plain  # noqa: PLW0603 - it is the same for all
    if _plain is None:
        _plain = await structures(PLAIN)
    plain, plain_event, plain_name = _plain
    pages, event, name = await structures(HOSTILE[kind])
    assert {normal(each, name) for each in pages} == {normal(each, plain_name) for each in plain}
    expected = {normal(where, plain_name): text for where, text in plain.items()}
    for where, text in pages.items():
        if text is None:
            continue
        tags, told = Tags(text), Tags(expected[normal(where, name)])
        if where.endswith(("/summary", "/folds/new")):  # which names it lists depends on the words
            assert {*tags.found} <= {*told.found}, where
            assert tags.found.count(("script", "src")) == told.found.count(("script", "src"))
        else:
            assert tags.found == told.found, where
        for attribute, value in tags.values:
            assert not attribute.startswith("on")
            assert attribute != "style"
            if attribute in ("href", "hx-get", "src", "action", "hx-sse:connect"):
                assert value.startswith(("/console", "#", "?")), (attribute, value)
    lines = event.split("\n")
    assert all(line.startswith("data: ") or not line for line in lines)
    assert lines[:-2].count("") == 0
    shown = "\n".join(line.removeprefix("data: ") for line in lines)
    told = "\n".join(line.removeprefix("data: ") for line in plain_event.split("\n"))
    assert Tags(shown).found == Tags(told).found


async def test_hostile_words_are_shown_as_they_are():
    words = HOSTILE["script"]
    pages, _, name = await structures(words)
    timeline = pages[f"/console/sessions/{quote(name, safe='')}"]
    assert html.escape(words).replace("&#x27;", "&#39;") in timeline


async def test_hostile_headers_and_tools_are_words_too():
    words = HOSTILE["script"] + HOSTILE["attribute"]
    pages = []
    for each in (PLAIN, words):
        world = GatewayWorld()
        async with world.state:
            function = {"name": "find", "description": each, "parameters": {each: each}}
            body = {
                "model": "m",
                "tools": [{"type": "function", "function": function}],
                "user": "u",
                "metadata": {each[:60]: each},
                "messages": [said("system", each), said("user", each)],
            }
            session, seq = await ask(world, CHAT, body, **{"user-agent": each})
            browser = await world.opened()
            answer = await browser.get(f"{CONSOLE}/sessions/{session}/requests/{seq}")
            assert answer.status_code == 200
            pages.append(Tags(answer.text).found)
    assert pages[0] == pages[1]


@pytest.mark.parametrize("kind", HOSTILE)
async def test_a_hostile_query_is_words(kind):
    words = "".join(filter(str.isprintable, HOSTILE[kind])).encode(errors="replace").decode()
    async with console(local=True) as world:
        browser = await world.opened()
        plain = await browser.get(CONSOLE, params={"q": PLAIN, "model": PLAIN, "form": PLAIN})
        answer = await browser.get(CONSOLE, params={"q": words, "model": words, "form": words})
        assert answer.status_code == plain.status_code == 200
        assert Tags(answer.text).found == Tags(plain.text).found
        missing = await browser.get(f"{CONSOLE}/sessions/{quote(words[:100], safe='')}")
        other = await browser.get(f"{CONSOLE}/sessions/{PLAIN}")
        assert missing.status_code == other.status_code == 404
        assert Tags(missing.text).found == Tags(other.text).found
        sign_in = await browser.get(f"{CONSOLE}/sign-in", params={"next": f"/console/{words}"})
        assert (
            Tags(sign_in.text).found == Tags((await browser.get(f"{CONSOLE}/sign-in")).text).found
        )


async def test_five_megabytes_on_one_line_make_no_large_page():
    async with console(local=True) as world:
        browser, log = await world.opened(), world.store.log("default")
        line = "<b>" + "x" * 5_000_000
        arguments = {"name": "write", "arguments": json.dumps({"text": line})}
        calls = [{"id": "c", "type": "function", "function": arguments}]
        values = [
            Opened(FORMAT, line, title=line, origin=Origin(line, line, line, line)),
            Message(raw(said("user", line))),
            Message(raw(said("assistant", None, tool_calls=calls))),
            Message(raw(said("tool", line, tool_call_id="c"))),
            Note(line),
            Titled(line),
            *folded_by_hand(line),
        ]
        await log.append("s", [Author().draft(each) for each in values], expected=0)
        for where, text in (await crawl(browser)).items():
            assert text is None or len(text) < 150_000, where


async def test_a_message_of_very_many_parts_makes_no_large_page():
    async with console(local=True) as world:
        browser, log = await world.opened(), world.store.log("default")
        parts = [{"type": "text", "text": f"part {nth}"} for nth in range(20_000)]
        values = [Opened(FORMAT, "balanced"), Message(raw(said("user", parts)))]
        await log.append("s", [Author().draft(each) for each in values], expected=0)
        page = await browser.get(f"{CONSOLE}/sessions/s")
        assert len(page.text) < 150_000
        assert page.status_code == 200


async def test_a_form_of_very_many_fields_is_refused():
    async with console() as world:
        await world.key("acme", "read")
        data = {f"field{nth}": "x" for nth in range(100)}
        browser = world.browser()
        answer = await browser.post(f"{CONSOLE}/sign-in", data=data, headers={"origin": TEAM})
        assert answer.status_code == 413
        assert "All sessions" in answer.text


async def test_halves_of_characters_and_controls_are_named():
    async with console(local=True) as world:
        browser, log = await world.opened(), world.store.log("default")
        words = HOSTILE["direction"] + HOSTILE["ansi"] + HOSTILE["surrogate"]
        values = [Opened(FORMAT, "balanced"), Message(raw(said("user", words)))]
        await log.append("s", [Author().draft(each) for each in values], expected=0)
        page = await browser.get(f"{CONSOLE}/sessions/s")
        text = page.content.decode()
        assert "[U+202E]" in text
        assert "␛[31m" in text
        assert "half ? of" in text
        assert re.search("[\u202a-\u202e\u2066-\u2069\x1b\x00]", text) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("a\x00b\x1b\x7f", "a␀b␛␡"),
        ("\r\n", "␍\n"),
        ("\u202e", "[U+202E]"),
        ("العربية עברית", "العربية עברית"),
        ("é 北京 👍", "é 北京 👍"),
        ("\U000e0041", "[U+E0041]"),
    ],
)
def test_what_cannot_be_seen_is_named(text, shown):
    assert visible(text) == shown
