"""Session files of Claude Code, Codex, Gemini CLI and our own become messages, in pairs."""

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from lab_files import (
    CLAUDE,
    CODEX,
    COPILOT,
    EXPORTED,
    GEMINI,
    GEMINI_CHAT,
    GEMINI_LINES,
    OLD_CODEX,
    OPENCODE_ID,
    PICTURE,
    QWEN,
    claude,
    claude_call,
    claude_result,
    claude_said,
    codex_text,
    gemini,
    item,
    opencode_database,
    opencode_storage,
    qwen,
)
from pydantic_ai.messages import BinaryContent, ModelMessagesTypeAdapter

from refold.lab import Usage
from refold.log import Origin
from refold.transcripts import (
    parse_claude_code,
    parse_codex,
    parse_copilot_cli,
    parse_exported,
    parse_gemini,
    parse_gemini_chat,
    parse_qwen_code,
)
from refold.transcripts.opencode import read_database
from refold.transcripts.programs import read_sessions
from refold.wire.fingerprint import users_words


def said(recording) -> list[Any]:
    """Each message, short: who speaks, and what."""
    messages = ModelMessagesTypeAdapter.validate_json(b"[" + b",".join(recording.payloads) + b"]")
    return [[_short(part) for part in message.parts] for message in messages]


def _short(part):
    match part.part_kind:
        case "tool-call":
            return "call", part.tool_call_id, part.args_as_dict()
        case "tool-return":
            return part.outcome, part.tool_call_id, part.content
        case kind:
            return kind, part.content


def test_claude_code_is_read_as_the_model_was_shown_it():
    found = parse_claude_code(CLAUDE, "x")
    prompt, answer, first, second, done, better, yes, go_on, goes_on = said(found)
    assert prompt == [("user-prompt", "Fix it.")]
    assert answer == [
        ("thinking", "Hm."),
        ("text", "Reading."),
        ("call", "c1", {"file_path": "a.py"}),
        ("call", "c2", {"file_path": "b.py"}),
    ]
    assert first[0][:2] == ("success", "c1")
    assert first[0][2][0] == "x = 1"
    assert second == [("failed", "c2", "no such file")]
    assert [done, better, yes] == [
        [("text", "Done.")],
        [("user-prompt", "Better this.")],
        [("text", "Yes.")],
    ]
    assert isinstance(go_on[0][1][1], BinaryContent)
    assert goes_on == [("text", "I go on.")]
    assert found.messages[1].usage == Usage(29, 7, 11, 13)
    assert found.messages[1].model == "claude-opus-4-5"
    assert found.messages[1].at == 1_779_796_800_000
    assert found.skipped == {
        "side chain": 2,
        "summary": 1,
        "taken back": 2,
        "compact_boundary": 1,
        "compact summary": 1,
        "error of the program": 1,
    }


def test_a_summary_that_stands_alone_and_a_file_of_side_chains_are_read():
    begun = [
        claude("user", "u", None, "This session is being continued.", isCompactSummary=True),
        claude_said("a", "u", "m", {"type": "text", "text": "Yes."}),
    ]
    assert len(parse_claude_code(begun, "x").messages) == 2
    apart = [one | {"isSidechain": True} for one in begun]
    assert len(parse_claude_code(apart, "x").messages) == 2


def queued(operation, content=None):
    more = {} if content is None else {"content": content}
    return {"type": "queue-operation", "operation": operation, "sessionId": "s", **more}


def attached(kind, **fields):
    return claude("user", f"at-{kind}", "u", "") | {
        "type": "attachment",
        "attachment": {"type": kind, **fields},
    }


def test_prompts_typed_while_claude_code_works_are_read_where_they_were_taken_up():
    notice, task = "<task-notification>built</task-notification>", '{"task_id": "t"}'
    records = [
        claude("user", "u", None, "Go."),
        claude_said("a1", "u", "m1", claude_call("c1")),
        queued("enqueue", task),
        queued("enqueue", notice),
        queued("enqueue", "And the tests?"),
        claude_said("a2", "u", "m1", claude_call("c2")),
        queued("remove"),
        claude_result("r1", "a1", "c1", "one"),
        claude_result("r2", "a2", "c2", "two"),
        claude_said("a3", "r2", "m2", {"type": "text", "text": "Those too."}),
        queued("remove"),
        queued("enqueue", "Never mind"),
        queued("popAll", "Never mind"),
        queued("dequeue"),
        claude("user", "u2", "a3", notice),
        claude_said("a4", "u2", "m3", {"type": "text", "text": "Built."}),
        queued("enqueue", "/exit"),
        queued("remove"),
        queued("enqueue", "Too late."),
    ]
    texts = [part[-1] for message in said(parse_claude_code(records, "x")) for part in message]
    assert texts[3:] == ["one", "two", "And the tests?", "Those too.", notice, "Built."]


def test_the_text_of_a_slash_command_is_not_the_user_s():
    command = "<command-name>/plan</command-name><command-args>less intrusive</command-args>"
    records = [
        claude("user", "u1", None, command),
        claude("user", "u2", "u1", "# Create a plan\nNEVER CODE!") | {"isMeta": True},
        claude_said("a1", "u2", "m1", {"type": "text", "text": "Yes."}),
    ]
    texts = [part[-1] for message in said(parse_claude_code(records, "x")) for part in message]
    assert texts[0] == command
    assert texts[1] == "<system-reminder>\n# Create a plan\nNEVER CODE!\n</system-reminder>"
    assert users_words(texts[1]) == ""


def test_what_claude_code_attaches_to_a_request_is_read():
    records = [
        claude("user", "u", None, "Go."),
        attached("nested_memory", path="RULES.md", content={"content": "Be terse."}),
        attached("auto_mode", autoModeConsentFlow=False),
        attached("hook_success", hookEvent="PostToolUse", content="fine"),
        attached("hook_additional_context", content=["Mind the gap."]),
        claude_said("a1", "u", "m1", claude_call("c1")),
        claude_result("r1", "a1", "c1", "one"),
        queued("remove", "Also this."),
        attached("queued_command", prompt="Also this.", commandMode="prompt"),
        attached("file", filename="a.py", content={"type": "text", "file": {"content": "x = 1"}}),
        claude_said("a2", "r1", "m2", {"type": "text", "text": "Yes."}),
    ]
    found = parse_claude_code(records, "x")
    go, rules, gap, _, _, also, file, _ = said(found)
    assert go == [("user-prompt", "Go.")]
    assert [rules[0][1], gap[0][1], file[0][1]] == [
        f"<system-reminder>\n{text}\n</system-reminder>"
        for text in ("RULES.md\nBe terse.", "Mind the gap.", "a.py\nx = 1")
    ]
    assert also == [("user-prompt", "Also this.")]
    assert found.skipped == {"attachment: auto_mode": 1, "attachment: hook_success": 1}


def test_copilot_cli_is_read_as_the_model_was_shown_it():
    found = parse_copilot_cli(COPILOT, "x")
    system, prompt, answer, first, second, done = said(found)
    assert [system, prompt] == [
        [("system-prompt", "Be brief.")],
        [("user-prompt", "Fix it. (Noon.)")],
    ]
    assert answer == [
        ("thinking", "Hm."),
        ("text", "Reading."),
        ("call", "c1", {"path": "a.py"}),
        ("call", "c2", {"path": "b.py"}),
    ]
    assert (first, second) == ([("success", "c1", "x = 1")], [("failed", "c2", "no such file")])
    assert done == [("text", "Done.")]
    assert found.messages[2].usage == Usage(29, 7, 11)
    assert (found.messages[2].model, found.messages[2].at) == (
        "claude-sonnet-4.5",
        1_779_796_800_000,
    )
    assert found.skipped["sub-agent"] == 1
    assert found.skipped["line that was there already"] == 1


def test_codex_searches_for_tools_are_calls_with_results():
    query, tools = {"query": "issues"}, [{"name": "create_issue"}]
    records = [
        codex_text("user", "File it."),
        item("tool_search_call", call_id="c", execution="client", arguments=query),
        item("tool_search_output", call_id="c", execution="client", tools=tools),
        item("tool_search_call", call_id=None, execution="server", arguments=query),
        codex_text("assistant", "Filed."),
    ]
    found = parse_codex(records, "x")
    assert said(found)[1:] == [
        [("call", "c", query)],
        [("success", "c", '{"name":"create_issue"}')],
        [("text", "Filed.")],
    ]
    assert found.skipped == {"tool_search_call": 1}


def test_claude_code_repeats_nothing_and_breaks_no_pair():
    records = [
        claude_result("r0", None, "c0", "from before"),
        claude("user", "u", None, "Go."),
        claude("user", "u", None, "Go."),
        claude_said("a", "u", "m", claude_call("c")),
        claude_said("b", "u", "n", claude_call("c")),
        claude_result("r1", "a", "c", "one"),
        claude_result("r2", "a", "c", "two"),
        claude("user", "p", "r1", [PICTURE]),
        claude("user", "q", "r1", "Also."),
    ]
    found = parse_claude_code(records, "x")
    assert [len(one) for one in said(found)] == [1, 1, 1, 1, 1]
    assert found.skipped == {
        "result without its call": 1,
        "line that was there already": 1,
        "call that was there already": 1,
        "empty message": 1,
        "second result of a call": 1,
    }


def test_codex_is_read_as_the_model_was_shown_it():
    found = parse_codex(CODEX, "x")
    assert said(found) == [
        [("system-prompt", "Be brief.")],
        [("user-prompt", "<environment_context>here</environment_context>")],
        [("user-prompt", "Fix it.")],
        [
            ("thinking", "Hm."),
            ("text", "Reading."),
            ("call", "c1", {"command": ["ls"]}),
            ("call", "c2", {"input": "*** Begin"}),
        ],
        [("success", "c1", "a.py")],
        [("success", "c2", "ok")],
        [("call", "c3", {"command": ["pwd"]})],
        [("failed", "c3", "no")],
        [("text", "Done.")],
        [("user-prompt", "Better this.")],
        [("text", "Yes.")],
    ]
    answer = found.messages[3]
    assert (answer.usage, answer.model) == (Usage(100, 9, 60), "gpt-5-codex")
    assert found.skipped == {
        "session_meta": 1,
        "event: user_message": 1,
        "web_search_call": 1,
        "taken back": 2,
        "compacted": 1,
    }


def test_old_codex_files_have_no_envelope():
    bare = parse_codex(OLD_CODEX, "x")
    assert [one for one in said(bare) if one not in said(parse_codex(CODEX, "x"))] == [
        [("user-prompt", "Wrong.")],
        [("text", "Sorry.")],
    ]


def test_codex_takes_back_no_more_than_there_is():
    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 99}}
    found = parse_codex([codex_text("user", "Go."), item("reasoning", summary=[]), back], "x")
    assert found.messages == ()
    assert found.skipped == {"reasoning": 1, "taken back": 1}


GEMINI_SAID = [
    [("user-prompt", "Fix it.")],
    [
        ("thinking", "Plan\nLook."),
        ("text", "Reading."),
        ("call", "c1", {"path": "a.py"}),
        ("call", "c2", {"path": "a.py"}),
    ],
    [("success", "c1", "x = 1")],
    [("failed", "c2", "gone")],
    [("text", "Done.")],
]


def test_gemini_sessions_are_read_as_the_model_was_shown_them():
    found = parse_gemini(GEMINI, "x")
    assert said(found) == GEMINI_SAID
    assert (found.messages[1].usage, found.messages[1].model) == (
        Usage(100, 13, 60),
        "gemini-2.5-pro",
    )
    assert found.skipped == {"info": 1}


def test_gemini_lines_replace_rewind_and_begin_anew():
    found = parse_gemini(GEMINI_LINES, "x")
    assert said(found) == GEMINI_SAID
    assert found.skipped == {"info": 1, "metadata": 1, "taken back": 2}
    anew: dict[str, Any] = {"$set": {"messages": [gemini("user", "n", "New.")]}}
    assert said(parse_gemini([*GEMINI_LINES, anew], "x")) == [[("user-prompt", "New.")]]


def test_saved_gemini_chats_get_names_for_their_calls():
    found = parse_gemini_chat(GEMINI_CHAT, "x")
    assert said(found) == [
        [("user-prompt", "Fix it.")],
        [("thinking", "Hm."), ("text", "Reading."), ("call", "call-1", {"path": "a.py"})],
        [("success", "call-1", "x = 1")],
        [("text", "Done.")],
    ]


def test_our_own_exports_are_read_without_what_was_taken_back():
    found = parse_exported(EXPORTED, "x")
    assert said(found) == [[("user-prompt", "Fix it.")], [("text", "Done.")]]
    assert found.messages[0].at == 1_790_000_000_000
    assert found.skipped == {"frame": 2, "session": 1, "taken back": 1}


@pytest.mark.parametrize("form", ["openai-chat", "pydantic-ai"])
def test_our_own_exports_say_the_model_by_their_request_records(form):
    native = {"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]}
    answer = native if form == "pydantic-ai" else {"role": "assistant", "content": "Done."}
    bodies = [("session", {"format": form})]
    for model in ("gpt-4o", "gpt-4o-mini"):
        bodies += [("request", {"model": model}), ("message", answer), ("message", answer)]
    records: list[Any] = [
        {"seq": seq, "kind": kind, "version": 1, "body": body}
        for seq, (kind, body) in enumerate(bodies, 1)
    ]
    records.insert(2, {**records[1], "scope": "/helper", "body": {"model": "another"}})
    found = parse_exported(records, "x")
    assert [each.model for each in found.messages] == ["gpt-4o"] * 2 + ["gpt-4o-mini"] * 2


@pytest.mark.parametrize("value", ["lots", -1, True, 10**30, 1.5, None, [], {}])
def test_absurd_figures_and_times_are_no_figures(value):
    answer = claude_said("a", "u", "m", {"type": "text", "text": "Yes."})
    usage: Any = answer["message"]["usage"]
    usage["input_tokens"] = value
    answer["timestamp"] = value
    [found] = parse_claude_code([answer], "x").messages
    assert found.usage == Usage(24, 7, 11, 13)
    assert found.at in (None, 1)
    answer["message"]["usage"] = value
    [bare] = parse_claude_code([answer], "x").messages
    assert bare.usage is None
    assert json.loads(bare.payload)["kind"] == "response"


def test_qwen_code_is_read_as_the_model_was_shown_it():
    found = parse_qwen_code(QWEN, "x")
    assert said(found) == [
        [("user-prompt", "Fix it.")],
        [("thinking", "Hm."), ("text", "Reading."), ("call", "c1", {"path": "a.py"})],
        [("call", "c2", {"path": "a.py"})],
        [("success", "c1", "x = 1")],
        [("failed", "c2", "no such file")],
        [("text", "Done.")],
        [("user-prompt", "Better this.")],
        [("text", "Yes.")],
    ]
    assert (found.title, found.messages[1].model) == ("Fixing", "qwen3-coder")
    assert found.messages[1].usage == Usage(29, 7, 11)
    assert found.origin == Origin("qwen", "s", "/projects/shop", "main")
    assert found.skipped["taken back"] == 3


def test_a_sub_agent_of_qwen_code_names_its_parent():
    one = qwen("user", "u", None, {"text": "Look."}, agentId="a1", isSidechain=True)
    assert parse_qwen_code([one], "x").origin == Origin("qwen", "a1", "/projects/shop", "main", "s")


OPENCODE_SAID = [
    [("user-prompt", ["Fix it.", "picture", "[Attached application/pdf: a.pdf]"])],
    [
        *[("thinking", "Hm."), ("text", "Reading.")],
        *[("call", "c1", {"path": "a.py"}), ("call", "c2", {"path": "a.py"})],
    ],
    [("success", "c1", "x = 1")],
    [("failed", "c2", "no such file")],
    [("call", "c3", {"path": "a.py"})],
    [("text", "As far")],
    [("user-prompt", "Better this.")],
    [("text", "Yes.")],
]


@pytest.mark.parametrize("make", [opencode_database, opencode_storage])
def test_opencode_is_read_as_the_model_was_shown_it(tmp_path, make):
    path = tmp_path / "opencode.db"
    path = make(path) or path
    [file] = read_sessions(path)
    found = file.recording
    messages = said(found)
    assert isinstance(messages[0][0][1][1], BinaryContent)
    messages[0][0][1][1] = "picture"
    assert messages == OPENCODE_SAID
    assert found.origin == Origin("opencode", OPENCODE_ID, "/projects/shop", None, "ses_parent")
    assert (found.title, file.modified) == ("Fixing", 1_779_796_900)
    assert found.messages[4].usage == Usage(29, 7, 11)
    assert found.messages[4].model == "gpt-5-mini"
    assert found.skipped == {"failed answer": 1, "compaction": 1, "summary": 1, "taken back": 2}


def test_a_database_is_read_while_opencode_writes_to_it_and_left_as_it_is(tmp_path):
    path = tmp_path / "opencode.db"
    opencode_database(path)
    before = path.read_bytes()
    assert len([*read_database(path)]) == 1
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == before
    with closing(sqlite3.connect(path)) as db:  # its write-ahead log stays while it is open
        db.execute("PRAGMA journal_mode = WAL")
        opencode_database(path, session="ses_other000000000000000000000")
        assert len([*read_database(path)]) == 2


ENDLESS = " AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i AS id FROM n;"


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE TABLE other (id)",
        "CREATE TABLE session (id); CREATE TABLE message (id); CREATE TABLE part (id);",
        "".join(f"CREATE VIEW {name}{ENDLESS}" for name in ("session", "message", "part")),
    ],
    ids=["other", "columns", "views"],
)
def test_another_database_says_that_it_is_none_of_opencode(tmp_path, schema):
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(schema)
    [file] = read_sessions(path)
    assert "no database of opencode" in file.why
    path.write_bytes(path.read_bytes()[:3_000])
    [file] = read_sessions(path)
    assert "no database of opencode" in file.why


def test_damaged_rows_of_opencode_are_passed_over(tmp_path):
    path = tmp_path / "opencode.db"
    opencode_database(path)
    with closing(sqlite3.connect(path)) as db, db:
        for data in ("", "{", "[]", "null", b"\xff", 3):
            row = (f"msg_004{data!r}", OPENCODE_ID, 5, data)
            db.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
            row = (f"prt_{data!r}", "msg_006", OPENCODE_ID, data)
            db.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
    [file] = read_sessions(path)
    assert len(file.recording.messages) == len(OPENCODE_SAID)
