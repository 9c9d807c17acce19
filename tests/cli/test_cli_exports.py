"""A session as Markdown, as one JSON object and as a page."""

import asyncio
import json
import re
from html.parser import HTMLParser
from uuid import uuid4

import explain_picture
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from typer.testing import CliRunner

from refold.cli.app import app
from refold.errors import InvalidInput
from refold.exports import FORMS, exported
from refold.exports.moments import Closes, Opens, moments
from refold.log import (
    Author,
    Cleared,
    Findings,
    FoldCompleted,
    FoldStarted,
    FoldUndone,
    Message,
    Note,
    Opened,
    Span,
    Titled,
)
from refold.stores import MemoryStore, open_store

HOSTILE = (
    "</article></details></div><script>alert(1)</script><img src=x onerror=alert(1)>"
    "<style>*{display:none}</style> [click](javascript:alert(1)) ![x](http://a.example/b.png) "
    "<!-- \n```\n<details>\n"
)
VOID = {"meta", "br", "hr"}


def say(role, content, **more):
    return Message(json.dumps({"role": role, "content": content, **more}).encode())


async def kept(log, session, *values):
    author = Author()
    drafts = [author.draft(value) for value in (Opened("openai-chat", "balanced"), *values)]
    await log.append(session, drafts, expected=0)


def fold(first, last, summary):
    name = uuid4()
    spans = (Span(first, last),)
    return FoldStarted(name, spans, "manual"), FoldCompleted(name, spans, summary)


async def written(log, session, form):
    return "".join([piece async for piece in exported(log, session, form)])


class Page(HTMLParser):
    """A page that is read strictly: each tag that opens closes, and in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def safe(page):
    assert not {"script", "img", "iframe", "link", "object", "form"} & set(page.tags)
    assert page.tags.count("style") == 1
    for name, value in page.attributes:
        assert not name.startswith("on")
        assert name != "src"
        assert name != "href" or not value.startswith("javascript")


async def test_the_page_has_a_timeline_in_which_folds_can_be_opened(log):
    await explain_picture.write(log, "s")
    text = await written(log, "s", "html")
    page = Page(text)
    safe(page)
    summary = "<strong>Conversation Compacted</strong> <span>6 messages and 2,857 tokens removed"
    assert text.count(summary) == 1
    spans_of_fold = text.partition('<details class="compacted"')[2].partition('id="e12"')[0]
    assert "Find out why." in spans_of_fold
    assert "dates of the Tallinn branch have no time zone." in spans_of_fold
    assert text.count('<details class="call">') == 7
    assert '<details class="aside">\n<summary>Rewound: 2 messages' in text
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    assert "default-src 'none'" in text
    assert not re.search(r"https?://", text)


@pytest.mark.parametrize("form", FORMS)
async def test_hostile_words_stay_words(log, form):
    call = {"name": HOSTILE, "arguments": json.dumps({HOSTILE: HOSTILE})}
    await kept(
        log,
        "s",
        Titled(HOSTILE),
        say("system", HOSTILE),
        say("user", HOSTILE),
        say("assistant", HOSTILE, tool_calls=[{"id": "1", "type": "function", "function": call}]),
        say("tool", HOSTILE, tool_call_id="1"),
        Note(HOSTILE),
        *fold(3, 6, HOSTILE),
        say("user", "THE END"),
    )
    text = await written(log, "s", form)
    if form == "html":
        page = Page(text)
        safe(page)
        assert "<script>alert(1)</script>" in page.text
        assert page.open == []
    elif form == "markdown":
        # What comes last is still seen as a heading and a text, outside of all that was said.
        shown = MarkdownIt("commonmark").render(text)
        assert shown.endswith("<h3>User</h3>\n<p>THE END</p>\n")
        assert shown.count("<details>") == shown.count("</details>")
    else:
        assert json.loads(text)["messages"][1]["message"]["content"] == HOSTILE


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(st.sampled_from("<>/!-`~\"'& \nadetilsprcox[]()#*|"), max_size=40), max_size=5)
)
def test_whatever_is_said_the_page_is_whole(texts):
    async def check():
        log = MemoryStore().log()
        await kept(log, "s", *(say("user", text) for text in texts), say("user", "THE END"))
        safe(Page(await written(log, "s", "html")))
        shown = MarkdownIt("commonmark").render(await written(log, "s", "markdown"))
        assert "<h3>User</h3>\n<p>THE END</p>\n" in shown

    asyncio.run(check())


async def test_the_object_has_messages_as_they_are_spelled(log):
    odd = Message(b'{"role":"user",  "content":"\\u00fc", "n": 12345678901234567890.10}')
    await kept(log, "s", odd, Note("not a message"), say("assistant", "yes"))
    text = await written(log, "s", "json")
    assert odd.payload.decode() in text
    told = json.loads(text)
    assert [one["seq"] for one in told["messages"]] == [2, 4]
    assert (told["session"]["name"], told["session"]["format"]) == ("s", "openai-chat")
    assert told["folds"] == []
    assert told["totals"] == {
        "messages": 2,
        "calls": 0,
        "characters": 4,
        "folds": 0,
        "tokens_removed": 0,
    }


def _told(one):
    """A moment in short: what opens, what closes, and what lies where."""
    match one:
        case Opens(group):
            return f"+{group.seq}"  # pyright: ignore[reportAttributeAccessIssue] - a fold
        case Closes(group):
            return f"-{group.seq}"  # pyright: ignore[reportAttributeAccessIssue] - a fold
        case _:
            return str(one.seq)


async def test_folds_in_folds_and_folds_taken_back(log):
    says = [say("user", f"word {n} " * 50) for n in range(8)]
    await kept(log, "s", *says, *fold(2, 4, "first"))
    author = Author()
    started, completed = fold(2, 6, {"by": "hand", "over": [11], "shown": []})
    undone = fold(7, 8, "third")
    for value in (started, completed, *undone, FoldUndone(undone[0].fold)):
        await log.append("s", [author.draft(value)], expected=None)
    order = [_told(one) async for one in moments(log, "s")]
    assert order[:9] == ["+13", "+11", "2", "3", "4", "-11", "5", "6", "-13"]
    told = json.loads(await written(log, "s", "json"))
    assert [(one["seq"], one["stands"]) for one in told["folds"]] == [
        (11, True),
        (13, True),
        (15, False),
    ]
    outer = told["folds"][1]
    assert (outer["messages_removed"], told["totals"]["folds"]) == (5, 2)
    assert told["totals"]["tokens_removed"] == outer["tokens_removed"] > 0
    page = await written(log, "s", "html")
    assert page.count("Conversation Compacted") == 3
    assert page.count("It was taken back later.") == 1
    Page(page)


async def test_what_was_cleared_and_what_was_forgotten(log):
    await kept(log, "s", say("user", "before"), Cleared(), say("user", "secret"))
    await log.forget("s", Span(4, 4))
    text = await written(log, "s", "markdown")
    assert "<summary>Cleared: 1 message no longer in the conversation</summary>" in text
    assert "*Forgotten.*" in text
    assert "secret" not in text
    assert "Forgotten." in await written(log, "s", "html")


async def test_a_format_that_nobody_knows(log):
    author = Author()
    drafts = [author.draft(Opened("telex", "balanced")), author.draft(Message(b'{"x": "STOP"}'))]
    await log.append("s", drafts, expected=0)
    for form in FORMS:
        assert "STOP" in await written(log, "s", form)
    with pytest.raises(InvalidInput, match="Use one of markdown, json, html"):
        await written(log, "s", "pdf")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFOLD_STORE", "sqlite:///refold.db")

    async def fill():
        async with open_store("sqlite:///refold.db") as store:
            await kept(store.log(), "s", say("user", "Hello \ud83d"), say("assistant", "Hi"))

    asyncio.run(fill())
    return tmp_path


def said(*arguments, code=0):
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done.output


def test_the_command_writes_each_form(folder):
    assert said("export", "s").startswith('{"refold":1,"session":"s"}\n')
    assert said("export", "s", "--as", "jsonl") == said("export", "s")
    assert said("export", "s", "--as", "markdown").startswith("# s\n")
    assert said("export", "s", "--as", "html").startswith("<!doctype html>")
    assert json.loads(said("export", "s", "--as", "json"))["totals"]["messages"] == 2
    done = json.loads(said("export", "s", "--as", "html", "-o", "s.html", "--json"))
    size = (folder / "s.html").stat().st_size
    expected = {"session": "s", "form": "html", "file": "s.html", "entries": 3, "bytes": size}
    assert done == expected


def test_the_command_refuses_what_cannot_be(folder):
    assert "Use one of jsonl, markdown, json, html." in said("export", "s", "--as", "pdf", code=2)
    assert "Name a file with -o" in said("export", "s", "--json", code=2)
    assert list(folder.iterdir()) == [folder / "refold.db"]


async def test_what_a_delegated_agent_found_is_shown():
    log = MemoryStore().log()
    found = Findings((Span(2, 2),), {"text": "The gate is in `b.py`."})
    author = Author()
    drafts = [author.draft(Opened("openai-chat", "inkeep")), author.draft(say("user", "Look."))]
    drafts += [author.draft(found, scope="/helper")]
    await log.append("s", drafts, expected=0)
    assert "### Findings in `/helper`\n\nThe gate is in `b.py`." in await written(
        log, "s", "markdown"
    )
    assert "The gate is in" in await written(log, "s", "html")
    assert len(json.loads(await written(log, "s", "json"))["messages"]) == 1


async def test_code_on_the_page_is_colored_and_stays_words(log):
    code = "def f():\n    return '<script>'  # why\n"
    blocks = f"```python\n{code}```\n\n```klingon\nqap = '<b>'\n```\n\n```\n<i>\n```"
    await kept(log, "s", say("user", "how?"), say("assistant", blocks))
    text = await written(log, "s", "html")
    page = Page(text)
    safe(page)
    assert {"k", "nf", "s1", "c1"} <= {value for name, value in page.attributes if name == "class"}
    assert code in page.text
    assert "qap = '<b>'" in page.text
    assert "<i>" in page.text
    assert 'pre [class^="k"]' in text
