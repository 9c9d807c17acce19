"""Long tool results, as co-cli cuts them."""

import copy
import json
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest
from shown import changed

from refold.view.profiles import CO_CLI

pytest.importorskip("pydantic_ai", reason="the library whose messages these are")

from co_cli_world import (
    IMAGE,
    asked,
    called,
    chat,
    fresh,  # noqa: F401 - for every test
    returned,
)
from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart

from refold.integrations.co_cli import _content_length, truncate_tool_returns

trimmed = partial(truncate_tool_returns, profile=CO_CLI)


# Long tool results.


def result(content: Any, after=2):
    messages = [asked("Look."), called("c"), returned("c", content=content), *chat(after, first=4)]
    found = trimmed(messages)
    assert (found[:2], found[3:]) == (messages[:2], messages[3:])
    return cast("Any", found[2].parts[0]).content


@pytest.mark.req("R012", "R013", "R014", "R017")
def test_2000_characters_stay_and_2001_become_2031():
    assert result("x" * 2000) == "x" * 2000
    content = "".join(chr(97 + n % 26) for n in range(2001))
    assert result(content) == content[:2000] + "\n[…truncated, 2001 chars total]"
    assert len(result(content)) == 2031


@pytest.mark.req("R013")
def test_the_last_two_messages_are_safe():
    assert result("x" * 5000, after=1) == result("x" * 5000, after=0) == "x" * 5000
    assert result("x" * 5000, after=2) != "x" * 5000


@pytest.mark.req("R017")
def test_what_is_cut_already_is_not_cut_again():
    once = result("x" * 70_000)
    assert len(once) > 2000
    assert result(once) == once
    messages = [asked("Look."), called("c"), returned("c", content=once), *chat(3)]
    assert trimmed(messages) is messages


@pytest.mark.req("R014")
def test_0_leaves_every_result():
    messages = [asked("Look."), called("c"), returned("c", content="x" * 9000), *chat(3)]
    off = changed(CO_CLI, trim={"max_chars": 0})
    assert truncate_tool_returns(messages, profile=off) is messages


@pytest.mark.req("R015")
@pytest.mark.parametrize("key", ["text", "naïve"])
def test_a_mapping_is_measured_and_cut_as_json(key):
    frame = len(json.dumps({key: ""}, ensure_ascii=False, separators=(",", ":")))
    fits, over = ({key: "é" * (size - frame)} for size in (2000, 2001))
    assert (_content_length(fits), _content_length(over)) == (2000, 2001)
    assert result(fits) == fits
    shown = ToolReturnPart("read", over, "c").model_response_str()
    assert result(over) == shown[:2000] + "\n[…truncated, 2001 chars total]"


@pytest.mark.req("R015")
@pytest.mark.parametrize(
    ("content", "length"), [("", 0), ("naïve", 5), ({"a": 1}, 7), ({}, 2), ([1, "é"], 7), (7, 1)]
)
def test_content_is_measured_as_the_model_reads_it(content, length):
    assert _content_length(content) == length


@pytest.mark.req("R016")
def test_all_but_the_content_stays_and_nothing_is_changed_in_place():
    long = ToolReturnPart("read", "x" * 3000, "c", metadata={"k": (1, 2)}, outcome="failed")
    short = ToolReturnPart("list", "short", "d")
    words = UserPromptPart("u" * 3000)
    request = ModelRequest(parts=[long, short, words], metadata={"mine": 1}, run_id="run")
    messages = [asked("p" * 3000), called("c", "d", text="s" * 3000), request, *chat(2)]
    before = copy.deepcopy(messages)
    found = trimmed(messages)
    assert messages == before
    cut = cast("Any", found[2].parts[0])
    assert cut == replace(long, content="x" * 2000 + "\n[…truncated, 3000 chars total]")
    assert cut.metadata is long.metadata
    assert found[2].parts[1] is short
    assert found[2].parts[2] is words
    assert replace(found[2], parts=[]) == replace(request, parts=[])
    assert [one is two for one, two in zip(found, messages, strict=True)].count(False) == 1


def test_a_picture_beside_a_long_text_stays():
    assert result(["x" * 3000, IMAGE]) == [
        "x" * 2000 + "\n[…truncated, 3000 chars total]",
        IMAGE,
    ]
