"""What is heard of a turn: the answer in blocks, calls and events in lines, nothing obeyed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.cli.chat.clean import Cleaner, cleaned
from refold.cli.chat.surface import (
    ContextEvent,
    RemoteMessage,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolResult,
)
from refold.cli.chat.terminal import markdown
from refold.cli.chat.terminal.live import Live, Scrollback
from refold.cli.chat.terminal.markdown import Blocks, fenced
from refold.cli.chat.text import PROMPT
from refold.fold.events import CompactionComplete, CompactionHeld, CompactionStart
from refold.view import Truncation, UsageInfo

lines = st.sampled_from(
    [
        "some text",
        "# heading",
        "- item",
        "  more",
        "1. one",
        "```py",
        "```",
        "~~~",
        "  ```",
        "- ```sh",
        "    code",
        "| a | b |",
        "|---|---|",
        "> quoted",
        "- - -",
        "`` ```x``` ``",
        "```x``` y",
        "",
        " ",
        "\t",
        "日本 🎉",
    ]
)
documents = st.lists(lines, max_size=12).map("\n".join) | st.text(max_size=60)


@given(documents, st.lists(st.integers(0, 200), max_size=8))
def test_blocks_are_the_text_however_it_is_cut(text, cuts):
    whole = Blocks()
    expected = [*whole.feed(text), *whole.finish()]
    assert "".join(expected) == text
    assert all(expected)

    blocks, got, at = Blocks(), [], 0
    for cut in sorted(cuts):
        got += blocks.feed(text[at:cut])
        at = max(at, cut)
        assert "".join(got) + blocks.rest == text[:at]
    got += [*blocks.feed(text[at:]), *blocks.finish()]
    assert got == expected
    assert blocks.rest == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\n\ntwo", ["one\n\n", "two"]),
        ("# a\nb\n", ["# a\n", "b\n"]),
        ("text\n```\na\n\nb\n```\nafter", ["text\n", "```\na\n\nb\n```\n", "after"]),
        ("- a\n\n- b\n\nc", ["- a\n\n- b\n\n", "c"]),
        ("- a\n\n  more\n- b\n# h\n", ["- a\n\n  more\n- b\n", "# h\n"]),
        (
            "1. a\n   ```\n   x\n\n   y\n   ```\n2. b\n\nc",
            ["1. a\n   ```\n   x\n\n   y\n   ```\n2. b\n\n", "c"],
        ),
        ("| a |\n|---|\n| 1 |\n\nc", ["| a |\n|---|\n| 1 |\n\n", "c"]),
        ("    a\n\n    b\nc", ["    a\n\n    b\n", "c"]),
        ("````\n```\n````\nx", ["````\n```\n````\n", "x"]),
        ("so:\n- a\n- b\n\nc", ["so:\n", "- a\n- b\n\n", "c"]),
        ("---\n> a\nb\n", ["---\n", "> a\nb\n"]),
        ("a\n===\nb\n", ["a\n===\n", "b\n"]),
        ("- a\n* b\n", ["- a\n", "* b\n"]),
    ],
)
def test_blocks_end_where_they_are_surely_finished(text, expected):
    blocks = Blocks()
    assert [*blocks.feed(text), *blocks.finish()] == expected


def test_a_block_comes_as_soon_as_it_is_finished():
    blocks = Blocks()
    assert blocks.feed("one\n\n") == ["one\n\n"]
    assert blocks.feed("```\nx\n") == []
    assert blocks.rest == "```\nx\n"
    assert blocks.feed("```\n") == ["```\nx\n```\n"]


@pytest.mark.parametrize("line", ["- item\n", "more text\n", "code\n", "> quoted\n", "a\n\n"])
@pytest.mark.parametrize("first", ["", "```\n"])
def test_a_long_block_takes_time_as_it_is_long(monkeypatch, first, line):
    parsed = []
    parse = markdown._top_level

    def counted(lines):
        parsed.append(sum(map(len, lines)))
        return parse(lines)

    monkeypatch.setattr(markdown, "_top_level", counted)
    text = first + line * 1_000
    blocks = Blocks()
    for each in text.splitlines(keepends=True):
        blocks.feed(each)
    blocks.finish()
    assert sum(parsed) <= 20 * len(text)


def test_a_fence_is_its_language_and_its_code():
    assert fenced("```python title\nx\n\n  y\n```\n\n") == ("python", "x\n\n  y")
    assert fenced("~~~\nopen") == ("", "open")
    assert fenced("text") is None


hostile = st.lists(
    st.sampled_from(
        [
            "a",
            "\x1b[31m",
            "\x1b]0;t\x07",
            "\x1b]8;;u\x1b\\",
            "\x1bc",
            "\x9b2J",
            "\r",
            "\b",
            "\u202e",
        ]
    ),
    max_size=10,
).map("".join)


@given(hostile | st.text(max_size=40), st.integers(0, 20))
def test_nothing_that_was_said_is_obeyed(text, cut):
    cleaner = Cleaner()
    for seen in (cleaned(text), cleaner.feed(text[:cut]) + cleaner.feed(text[cut:])):
        assert not any(c in seen for c in "\x1b\x9b\r\b\x07\u202e\ud800")
    assert cleaned("a\x1b[31mb\x1b]0;title\x07c\x1b]8;;u\x1b\\d") == "abcd"
    printed = _printed([TextDelta(text)])
    assert not any(c in printed for c in "\x1b\x9b\r\b\x07\u202e\ud800")


def test_a_sequence_is_taken_out_though_it_comes_in_pieces():
    cleaner = Cleaner()
    assert "".join(map(cleaner.feed, ["a\x1b", "[3", "1mb", "\x1b]0;ti", "tle\x07c"])) == "abc"


def _printed(heard, width=80, *, settle=True):
    """Without its styles, which are all that our own sequences are for."""
    live = Live()
    things = [one for each in heard for one in live.on_event(each)]
    things += live.settle() if settle else []
    text = Scrollback(color=False).rendered(things, width)
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;4m", "\x1b[1;2m", "\x1b[3m", "\x1b[9m"):
        text = text.replace(code, "")
    return text


def test_an_answer_is_printed_whole_and_without_boxes():
    text = """# Title
Some **bold** text with `code`, Vec<String> and <b>html</b>,
![a picture](http://x/y.png), <http://z> and [a link](http://w).

- one
- two
  - deep

| a | 日本 |
|---|-----:|
| 1 | 2 |

```python
if x:
    y
```
"""
    assert _printed([TextDelta(one) for one in text]) == (
        "Title\n"
        "\n"
        "Some bold text with code, Vec<String> and <b>html</b>,\n"
        "!a picture (http://x/y.png), http://z and a link (http://w).\n"
        "\n"
        " • one\n"
        " • two\n"
        "    • deep\n"
        "\n"
        " a  日本\n"
        " ───────\n"
        " 1     2\n"
        "\n"
        "if x:\n"
        "    y\n"
    )


words = st.lists(st.text("abcdefgh日é", min_size=1, max_size=6), min_size=1, max_size=40)


@given(words, st.integers(12, 90))
def test_every_word_is_printed_at_any_width(said, width):
    printed = _printed([TextDelta(" ".join(said))], width)
    assert "".join(printed.split()) == "".join(said)


def test_long_lines_of_code_are_left_to_the_terminal():
    assert "x" * 200 in _printed([TextDelta(f"```\n{'x' * 200}\n```\n")])


def test_calls_and_what_came_of_them():
    text = _printed(
        [
            TextDelta("I look."),
            ToolCall("1", "read_file", "path=src/app.py"),
            ToolCall("2", "search", "query=" + "long " * 40),
            ToolResult("2", "search", "it is\x1b[2J not there", 0.4, failed=True),
            ToolResult("1", "read_file", "line\n" * 120, 0.2),
            ToolCall("3", "wait", ""),
        ]
    )
    assert text.splitlines() == [
        "I look.",
        "",
        "● search query=long long long long long long long long long long long long lo…",
        "  └ failed: it is not there",
        "● read_file path=src/app.py",
        "  └ 120 lines in 0.2 s",
        "● wait",
        "  └ interrupted",
    ]


def test_thoughts_are_a_line_with_their_time():
    now = 0.0
    live = Live(lambda: now)
    assert live.on_event(ThinkingDelta("hm")) == []
    assert live.busy
    now = 12.0
    done = live.on_event(TextDelta("So."))
    assert "Thought for 12 s" in Scrollback(color=True).rendered(done, 80)
    assert not live.busy


def test_what_happens_to_the_conversation_is_told():
    folded = CompactionComplete("f", pre_tokens=52_000, post_tokens=1_400, messages_removed=42)
    said = _printed([ContextEvent(folded)], 200)
    assert said == (
        "Conversation folded: 42 messages, 52,000 → 1,400 tokens "
        "(/unfold reads it, /undo takes it back)\n"
    )
    failed = _printed([ContextEvent(CompactionComplete("f", error="no key"))])
    assert "could not be folded: no key" in failed
    held = CompactionHeld("no progress", "It freed 0 tokens.")
    assert held.remedy[:40] in _printed([ContextEvent(held)])
    assert "left out 3 older messages (40 tokens)" in _printed(
        [ContextEvent(Truncation(100, 90, 50, 7, 4))]
    )
    silent = [CompactionStart("auto", 1, 2, 3), UsageInfo(1, 1, 1, 1, 1, 1, is_initial=True)]
    assert _printed(map(ContextEvent, silent)) == ""
    assert f"From another terminal:\n{PROMPT}hi" in _printed([RemoteMessage("you", "hi")])


def test_what_is_coming_is_drawn_and_a_long_block_only_to_its_end():
    live, back = Live(), Scrollback(color=False)
    live.on_event(TextDelta("```\n" + "".join(f"line {n}\n" for n in range(5_000))))
    lines = back.lines(live.unfinished(80), 80)  # pyright: ignore[reportArgumentType] - something is
    assert lines[-1] == "line 4999"
    assert len(lines) < 1_000
    live.settle()
    assert live.unfinished(80) is None


FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
EMOJI = [
    FAMILY,
    "\U0001f44b\U0001f3fd",  # a waving hand with a skin tone
    "\U0001f469\U0001f3fe\u200d\U0001f4bb",  # a programmer with one
    "\U0001f1e8\U0001f1ed",  # the flag of Switzerland
    "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # of Scotland
    "\U0001f3f3\ufe0f\u200d\U0001f308",  # the rainbow flag
    "\u2764\ufe0f",
    "1\ufe0f\u20e3",
]


@pytest.mark.parametrize("emoji", EMOJI)
def test_emoji_of_several_characters_stay_whole_however_they_come(emoji):
    text = f"so {emoji}{emoji} it is {emoji}\nand\tmore"
    assert cleaned(text) == text
    assert _printed([TextDelta(f"so {emoji} it is")]) == f"so {emoji} it is\n"
    for size in (1, 2, 3):
        cleaner = Cleaner()
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert "".join(map(cleaner.feed, pieces)) == text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\u200db", "ab"),
        ("\u200d\u200d\t", "\t"),
        ("a\ufe0f\t", "a\t"),
        ("x\U000e0061\U000e0062\U000e007f", "x"),
        ("\U0001f3f4" + "\U000e0061" * 40 + "\U000e007f", "\U0001f3f4"),
        ("\U0001f468\u200d\x1b[31m", "\U0001f468"),
    ],
)
def test_joiners_outside_of_emoji_are_removed(text, clean):
    assert cleaned(text) == clean
    cleaner = Cleaner()
    assert "".join(map(cleaner.feed, text)) == clean


def test_one_of_something_is_no_plural():
    one = CompactionComplete("f", pre_tokens=50, post_tokens=1, messages_removed=1)
    assert "folded: 1 message, 50 → 1 token (" in _printed([ContextEvent(one)], 200)
    left_out = _printed([ContextEvent(Truncation(100, 51, 50, 2, 1))])
    assert "left out 1 older message (1 token)" in left_out
