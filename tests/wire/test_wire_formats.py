"""What is particular to OpenAI's messages and items, and to Anthropic's messages."""

import json

import pytest

from refold.errors import InvalidInput, UnknownFormat
from refold.testing.wire import conversations
from refold.wire import (
    WIRES,
    AnthropicMessages,
    Drop,
    Insert,
    OpenAIChat,
    OpenAIResponses,
    Replace,
    wire_for,
)

OPENAI, RESPONSES, ANTHROPIC = OpenAIChat(), OpenAIResponses(), AnthropicMessages()
GONE = Drop("test")
USER = {"role": "user", "content": "Go."}


def raw(*messages: object) -> list[bytes]:
    return [json.dumps(message, ensure_ascii=False).encode() for message in messages]


def kinds(wire, payload):
    return [shape.kind for shape in wire.describe(payload).shapes]


def texts(wire, payload):
    return [shape.text for shape in wire.describe(payload).shapes]


def says(text: str) -> Replace:
    return Replace(0, text, 0, "test")


def test_wires_are_found_by_name():
    assert {name: wire_for(name).name for name in WIRES} == {name: name for name in WIRES}
    with pytest.raises(UnknownFormat, match="openai-chat"):
        wire_for("smoke signals")
    with pytest.raises(UnknownFormat):
        conversations("smoke signals")


def test_an_assistant_of_openai_has_its_parts_in_a_fixed_order():
    [payload] = raw(
        {
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
                {"id": "b", "type": "custom", "custom": {"name": "c", "input": "plain"}},
            ],
            "function_call": {"name": "old", "arguments": "{}"},
            "audio": {"id": "audio_1"},
            "refusal": "No.",
            "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
            "reasoning_details": [{"data": "x"}],
            "reasoning": "hm",
            "role": "assistant",
        }
    )
    role, shapes, _ = OPENAI.describe(payload)
    assert role == "assistant"
    assert [(one.kind, one.text, one.tool, one.call, one.sealed) for one in shapes] == [
        ("thought", "hm", None, None, True),
        ("text", "one", None, None, False),
        ("text", "two", None, None, False),
        ("text", "No.", None, None, False),
        ("other", "", None, None, True),
        ("call", "{}", "old", "function:old", False),
        ("call", '{"x":1}', "f", "a", False),
        ("call", "plain", "c", "b", False),
    ]
    left = OPENAI.edit(payload, dict.fromkeys(range(8), GONE) | {3: says("Sorry.")})
    assert json.loads(left or b"") == {"refusal": "Sorry.", "content": None, "role": "assistant"}


@pytest.mark.parametrize("content", ['"text"', "null", '""'])
def test_calls_that_go_take_their_key(content):
    call = '{"id":"%s","type":"function","function":{"name":"f","arguments":"{}"}}'
    calls = ", ".join(call % name for name in "ab")
    payload = f'{{"role":"assistant", "content" : {content} , "tool_calls": [{calls}]}}'.encode()
    first = kinds(OPENAI, payload).index("call")
    one = OPENAI.edit(payload, {first: GONE})
    assert one == payload.replace(f"{call % 'a'}, ".encode(), b"")
    if first:
        none = OPENAI.edit(payload, {first: GONE, first + 1: GONE})
        assert none == b'{"role":"assistant", "content" : "text"}'
    quiet = OPENAI.edit(payload, {0: GONE})
    assert first == 0 or quiet == payload.replace(b'"text"', b"null")
    assert not OPENAI.problems([quiet or b"", *_answers(quiet)])


def _answers(payload):
    calls = [one for one in OPENAI.describe(payload).shapes if one.kind == "call"]
    return OPENAI.make([Insert(1, "return", "x", "t", one.tool, one.call) for one in calls])


def test_old_functions_are_answered_by_name():
    [payload] = raw({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}})
    made = _answers(payload)
    assert json.loads(made[0]) == {"role": "function", "name": "f", "content": "x"}
    assert OPENAI.problems([payload, *made]) == []
    assert len(OPENAI.problems([payload, *made, *made])) == 1


def test_arguments_stay_what_they_were():
    calls = [{"function": {"name": "f", "arguments": given}} for given in ("{}", {}, None)]
    [payload] = raw({"role": "assistant", "tool_calls": calls})
    new = json.loads(OPENAI.edit(payload, dict.fromkeys(range(3), says('{"x":1}'))) or b"")
    given = [call["function"]["arguments"] for call in new["tool_calls"]]
    assert given == ['{"x":1}', {"x": 1}, '{"x":1}']


def test_a_result_of_anthropic_keeps_all_but_its_words():
    block = (
        '{ "type":"tool_result","tool_use_id":"t", "is_error": true,%s "cache_control":{"x":1.0} }'
    )
    for content in (
        '"content" : "long text",',
        '"content":[{"type":"text","text":"long text","cache_control":{}}],',
    ):
        payload = ('{"content":[%s],"role":"user"}' % (block % content)).encode()
        new = ANTHROPIC.edit(payload, {0: Replace(4, "!", 0, "test")})
        assert new == payload.replace(b"long text", b"long!")
    payload = ('{"content":[%s],"role":"user"}' % (block % "")).encode()
    assert texts(ANTHROPIC, payload) == [""]
    assert texts(ANTHROPIC, ANTHROPIC.edit(payload, {0: says("now")})) == ["now"]


def test_what_was_found_becomes_words_and_leaves_the_picture():
    content = [{"type": "image"}, {"type": "search_result", "title": "t"}, {"type": "image"}]
    result = {"type": "tool_result", "tool_use_id": "t", "content": content}
    [payload] = raw({"role": "user", "content": [result]})
    new = json.loads(ANTHROPIC.edit(payload, {0: Replace(1, "…", 0, "test")}) or b"")
    assert new["content"][0]["content"] == [
        {"type": "image"},
        {"type": "text", "text": "{…"},
        {"type": "image"},
    ]


def test_a_picture_may_become_words_and_keeps_its_cache_mark():
    image = {"type": "image", "source": {"type": "url", "url": "x"}}
    [payload] = raw({"role": "user", "content": [{**image, "cache_control": {"ttl": "1h"}}, image]})
    new = json.loads(ANTHROPIC.edit(payload, dict.fromkeys(range(2), says("[picture]"))) or b"")
    assert new["content"] == [
        {"type": "text", "text": "[picture]", "cache_control": {"ttl": "1h"}},
        {"type": "text", "text": "[picture]"},
    ]


def test_a_call_of_anthropic_has_an_object():
    [payload] = raw({"role": "assistant", "content": [{"type": "tool_use", "input": {"x": 1}}]})
    assert json.loads(ANTHROPIC.edit(payload, {0: says('{"y": 1.0}')}) or b"")["content"] == [
        {"type": "tool_use", "input": {"y": 1.0}}
    ]
    for text in ("short", "[]", "", '"x"', "{"):
        with pytest.raises(InvalidInput, match="object"):
            ANTHROPIC.edit(payload, {0: says(text)})


@pytest.mark.parametrize("content", ['"Go on."', '[ {"type":"text","text":"Go on."} ]', '""', "[]"])
def test_returns_go_before_what_the_user_says(content):
    payload = f'{{"role":"user","x":1.0,"content":{content} }}'.encode()
    inserts = [Insert(1, "return", "x", "test", "f", call) for call in "ab"]
    joined = ANTHROPIC.join(inserts, payload) or b""
    said = ["Go on."] if "Go" in content else []
    assert texts(ANTHROPIC, joined) == ["x", "x", *said]
    assert kinds(ANTHROPIC, joined) == ["return", "return", *["prompt"] * len(said)]
    assert b'"x":1.0' in joined
    calls = [{"type": "tool_use", "id": call, "name": "f", "input": {}} for call in "ab"]
    before = raw(USER, {"role": "assistant", "content": calls})
    assert ANTHROPIC.problems([*before, joined]) == []


def test_the_last_word_may_be_empty_and_the_system_may_interrupt():
    assert ANTHROPIC.problems(raw(USER, {"role": "assistant", "content": ""})) == []
    system = {"role": "system", "content": "From now on, in French."}
    assert ANTHROPIC.problems(raw(USER, system)) == []
    assert ANTHROPIC.problems(raw(USER, system, {"role": "assistant", "content": "Oui."})) == []
    served = {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s"}]}
    assert ANTHROPIC.problems(raw(USER, served, system)) == []
    assert ANTHROPIC.describe(raw(system)[0]).shapes[0].fixed


def test_a_providers_own_summary_stays():
    blocks = [{"type": "compaction", "content": "so far"}, {"type": "text", "text": "and on"}]
    [payload] = raw({"role": "assistant", "content": blocks})
    [summary, said] = ANTHROPIC.describe(payload).shapes
    assert (summary.text, summary.sealed, summary.fixed) == ("so far", True, True)
    assert (said.sealed, said.fixed) == (False, False)


def test_tools_that_a_result_names_stay_known():
    content = [{"type": "tool_reference", "tool_name": "x"}]
    result = {"type": "tool_result", "tool_use_id": "t", "content": content}
    [shape] = ANTHROPIC.describe(raw({"role": "user", "content": [result]})[0]).shapes
    assert (shape.kind, shape.sealed, shape.fixed) == ("return", True, True)


@pytest.mark.parametrize("wire", [OPENAI, ANTHROPIC])
def test_markers_are_messages_of_the_user(wire):
    [made] = wire.make([Insert(1, "prompt", "[Summary]", "test")])
    assert json.loads(made) == {"role": "user", "content": "[Summary]"}


def test_calls_and_outputs_of_responses_go_by_id_and_sort():
    [call, output, shell, printed, asked, granted] = [
        RESPONSES.describe(one)
        for one in raw(
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "x"},
            {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}},
            {"type": "shell_call_output", "call_id": "a", "output": []},
            {"type": "mcp_approval_request", "id": "a", "name": "n", "arguments": "{}"},
            {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True},
        )
    ]
    names = [one.shapes[0].call for one in (call, output, shell, printed, asked, granted)]
    assert names == ["a", "a", *["shell_call:a"] * 2, *["mcp_approval_request:a"] * 2]
    assert [one.role for one in (call, output, shell, printed)] == ["assistant", "tool"] * 2


def test_an_id_that_looks_like_a_sort_is_still_a_functions():
    made = RESPONSES.make([Insert(1, "return", "x", "test", "f", "functions.f:0")])
    assert json.loads(made[0])["call_id"] == "functions.f:0"


def test_reasoning_is_read_by_its_text_or_its_summary():
    open_, told, shut = raw(
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "short"}],
            "content": [{"type": "reasoning_text", "text": "all"}],
        },
        {"type": "reasoning", "summary": [{"text": "one"}, {"text": "two"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
    )
    assert [texts(RESPONSES, one) for one in (open_, told, shut)] == [["all"], ["one\ntwo"], [""]]
    assert [RESPONSES.describe(one).shapes[0].opaque for one in (open_, told, shut)] == [0, 0, 4]
    with pytest.raises(InvalidInput, match="sealed"):
        RESPONSES.edit(open_, {0: says("x")})


def test_what_a_shell_printed_is_cut_within_its_own_form():
    [payload] = raw(
        {
            "type": "shell_call_output",
            "call_id": "a",
            "output": [
                {"stdout": "one", "stderr": "two", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "three", "stderr": "", "outcome": {"type": "exit", "exit_code": 2}},
            ],
            "max_output_length": 9,
        }
    )
    assert texts(RESPONSES, payload) == ["one\ntwo\nthree"]
    new = json.loads(RESPONSES.edit(payload, {0: Replace(3, "…", 0, "test")}) or b"")
    outcome = {"type": "exit", "exit_code": 2}
    assert new["output"] == [{"stdout": "one…", "stderr": "", "outcome": outcome}]
    assert new["max_output_length"] == 9


def test_what_holds_for_all_that_follows_stays_in_every_view():
    items = raw(
        {"type": "compaction", "encrypted_content": "gAAA"},
        {"type": "additional_tools", "role": "developer", "tools": []},
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
        {"type": "tool_search_output", "call_id": "a", "tools": []},
        {"type": "tool_search_output", "tools": []},
    )
    assert all(RESPONSES.describe(one).shapes[0].fixed for one in items)
    [compaction] = RESPONSES.describe(items[0]).shapes
    assert (compaction.opaque, "gAAA" in compaction.text) == (4, False)


def test_a_picture_that_the_provider_made_is_no_text():
    [payload] = raw({"type": "image_generation_call", "id": "i", "result": "iVBO" * 900})
    [shape] = RESPONSES.describe(payload).shapes
    assert (shape.media, shape.opaque, len(shape.text) < 100) == (("image",), 0, True)


def test_the_items_of_one_response_may_call_side_by_side():
    said = raw(
        USER,
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"},
        {"role": "assistant", "content": "On it."},
        {"type": "function_call_output", "call_id": "b", "output": "x"},
        {"type": "function_call_output", "call_id": "a", "output": "x"},
    )
    assert RESPONSES.problems(said) == []
    assert [one.at for one in RESPONSES.problems(said[:-1])] == [1]
    assert [one.at for one in RESPONSES.problems(said[:2])] == [1]
