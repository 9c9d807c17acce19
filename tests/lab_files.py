"""Session files as other programs write them, made by hand."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

DAY = "2026-05-26T12:{:02}:00.000Z"


def lines(*records) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


# --- Claude Code


def claude(kind, uuid, parent, content, minute=0, **more):
    message = {"role": kind, "content": content, **more.pop("message", {})}
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "isSidechain": False,
        "sessionId": "s",
        "timestamp": DAY.format(minute),
        "message": message,
        **more,
    }


def claude_said(uuid, parent, one, *blocks, **more):
    usage = {
        "input_tokens": 5,
        "cache_read_input_tokens": 11,
        "cache_creation_input_tokens": 13,
        "output_tokens": 7,
    }
    message = {"id": one, "model": "claude-opus-4-5", "usage": usage}
    return claude("assistant", uuid, parent, [*blocks], message=message, **more)


def claude_call(call, **arguments):
    return {"type": "tool_use", "id": call, "name": "Read", "input": arguments}


def claude_result(uuid, parent, call, text, **more):
    block = {"type": "tool_result", "tool_use_id": call, "content": text, **more}
    return claude("user", uuid, parent, [block], toolUseResult={"file": "long"})


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}

CLAUDE: tuple[dict[str, Any], ...] = (
    {"type": "summary", "summary": "Fixing", "leafUuid": "u9"},
    claude("user", "u1", None, "Fix it."),
    claude_said("a1", "u1", "m1", {"type": "thinking", "thinking": "Hm.", "signature": "x"}),
    claude_said("a2", "a1", "m1", {"type": "text", "text": "Reading."}),
    claude_said("a3", "a2", "m1", claude_call("c1", file_path="a.py")),
    claude_result("r1", "a3", "c1", [{"type": "text", "text": "x = 1"}, PICTURE]),
    claude_said("a4", "a3", "m1", claude_call("c2", file_path="b.py")),
    claude_result("r2", "a4", "c2", "no such file", is_error=True),
    claude("user", "s1", None, "Look around.", isSidechain=True),
    claude_said("s2", "s1", "m9", {"type": "text", "text": "I looked."}, isSidechain=True),
    claude_said("a5", "r2", "m2", {"type": "text", "text": "Done."}),
    claude("user", "u2", "a5", "Wrong."),
    claude_said("a6", "u2", "m3", {"type": "text", "text": "Sorry."}),
    claude("user", "u3", "a5", "Better this."),
    claude_said("a7", "u3", "m4", {"type": "text", "text": "Yes."}),
    {"type": "system", "subtype": "compact_boundary", "uuid": "b", "content": "Compacted"},
    claude("user", "u4", "b", "This session is being continued.", isCompactSummary=True),
    claude("assistant", "e1", "u4", [], isApiErrorMessage=True, message={"model": "<synthetic>"}),
    claude("user", "u5", "u4", [{"type": "text", "text": "Go on."}, PICTURE]),
    claude_said("a8", "u5", "m5", {"type": "text", "text": "I go on."}),
)

# --- Codex


def codex(kind, minute=0, **payload):
    return {"timestamp": DAY.format(minute), "type": kind, "payload": payload}


def item(kind, **fields):
    return codex("response_item", **{"type": kind, **fields})


def codex_text(role, text):
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


def codex_usage(sent, cached, output):
    usage = {"input_tokens": sent, "cached_input_tokens": cached, "output_tokens": output}
    return codex("event_msg", type="token_count", info={"last_token_usage": usage})


CODEX: tuple[dict[str, Any], ...] = (
    codex("session_meta", id="s", cwd="/tmp", originator="codex_cli_rs"),  # noqa: S108 - a name
    codex("turn_context", model="gpt-5-codex", cwd="/tmp"),  # noqa: S108 - a name
    codex_text("developer", "Be brief."),
    codex_text("user", "<environment_context>here</environment_context>"),
    codex_text("user", "Fix it."),
    codex("event_msg", type="user_message", message="Fix it."),
    item("reasoning", summary=[{"type": "summary_text", "text": "Hm."}], encrypted_content="x"),
    codex_text("assistant", "Reading."),
    item("function_call", name="shell", call_id="c1", arguments='{"command":["ls"]}'),
    item("custom_tool_call", name="apply_patch", call_id="c2", input="*** Begin"),
    codex_usage(100, 60, 9),
    item("function_call_output", call_id="c1", output="a.py"),
    item("custom_tool_call_output", call_id="c2", output="ok"),
    item("web_search_call", action={"query": "x"}),
    item("local_shell_call", call_id="c3", action={"type": "exec", "command": ["pwd"]}),
    item("function_call_output", call_id="c3", output={"content": "no", "success": False}),
    codex_text("assistant", "Done."),
    codex_text("user", "Wrong."),
    codex_text("assistant", "Sorry."),
    codex("event_msg", type="thread_rolled_back", num_turns=1),
    codex("compacted", message="summary", replacement_history=[]),
    codex_text("user", "Better this."),
    codex_text("assistant", "Yes."),
)
OLD_CODEX: tuple[dict[str, Any], ...] = (
    {"id": "s", "timestamp": DAY.format(0), "instructions": "Be brief."},
    {"record_type": "state"},
    *(one["payload"] for one in CODEX if one["type"] == "response_item"),
)

# --- Copilot CLI


def copilot(kind, one, minute=0, **data):
    return {
        "type": kind,
        "id": one,
        "timestamp": DAY.format(minute),
        "parentId": None,
        "data": data,
    }


def copilot_request(call, **arguments):
    return {"toolCallId": call, "name": "view", "arguments": arguments, "type": "function"}


def copilot_done(one, call, text, **more):
    result = {"content": text, "detailedContent": f"{text}, on the screen"}
    data = {"toolCallId": call, "success": True, "result": result} | more
    return copilot("tool.execution_complete", one, **data)


COPILOT: tuple[dict[str, Any], ...] = (
    copilot("session.start", "e1", sessionId="s", producer="copilot-agent", version=1),
    copilot("session.model_change", "e2", newModel="claude-sonnet-4.5"),
    copilot("system.message", "e3", role="system", content="Be brief."),
    copilot("user.message", "e4", content="Fix it.", transformedContent="Fix it. (Noon.)"),
    copilot("assistant.turn_start", "e5", turnId="0"),
    copilot(
        "assistant.message",
        "e6",
        messageId="m1",
        content="Reading.",
        reasoningText="Hm.",
        toolRequests=[copilot_request("c1", path="a.py"), copilot_request("c2", path="b.py")],
    ),
    copilot("assistant.usage", "e7", inputTokens=29, outputTokens=7, cacheReadTokens=11),
    copilot("tool.execution_start", "e8", toolCallId="c1", toolName="view", arguments={}),
    copilot_done("e9", "c1", "x = 1"),
    copilot("assistant.message", "s1", messageId="m8", content="I look.", parentToolCallId="c2"),
    copilot_done("e10", "c2", "", success=False, error={"message": "no such file"}),
    copilot("assistant.message", "e11", messageId="m2", content="Done.", toolRequests=[]),
    copilot("session.compaction_complete", "e12", success=True, summaryContent="It was fixed."),
    copilot("assistant.message", "e11", messageId="m2", content="Done.", toolRequests=[]),
)

# --- Gemini CLI


def gemini(kind, one, content, **more):
    return {"id": one, "timestamp": DAY.format(0), "type": kind, "content": content, **more}


def gemini_call(call, text, status="success"):
    answer = {"id": call, "name": "read_file", "response": {"output": text}}
    return {
        "id": call,
        "name": "read_file",
        "args": {"path": "a.py"},
        "status": status,
        "result": [{"functionResponse": answer}],
    }


GEMINI: tuple[dict[str, Any], ...] = (
    gemini("user", "u1", "Fix it."),
    gemini("info", "i1", "Update available."),
    gemini(
        "gemini",
        "g1",
        "Reading.",
        model="gemini-2.5-pro",
        thoughts=[{"subject": "Plan", "description": "Look.", "timestamp": DAY.format(0)}],
        tokens={"input": 100, "output": 9, "cached": 60, "thoughts": 4, "tool": 0, "total": 113},
        toolCalls=[gemini_call("c1", "x = 1"), gemini_call("c2", "gone", "error")],
    ),
    gemini("gemini", "g2", "Done.", model="gemini-2.5-pro"),
)
GEMINI_FILE = {"sessionId": "s", "projectHash": "h", "startTime": DAY.format(0), "messages": GEMINI}
GEMINI_LINES: tuple[dict[str, Any], ...] = (
    {"sessionId": "s", "projectHash": "h", "startTime": DAY.format(0), "kind": "main"},
    GEMINI[0],
    gemini("gemini", "g1", "Rea"),
    *GEMINI[1:],
    {"$set": {"lastUpdated": DAY.format(1)}},
    gemini("user", "u2", [{"text": "Wrong."}]),
    gemini("gemini", "g3", "Sorry."),
    {"$rewindTo": "u2"},
)
GEMINI_CHAT: tuple[dict[str, Any], ...] = (
    {"role": "user", "parts": [{"text": "Fix it."}]},
    {
        "role": "model",
        "parts": [
            {"text": "Hm.", "thought": True},
            {"text": "Reading."},
            {"functionCall": {"name": "read_file", "args": {"path": "a.py"}}},
        ],
    },
    {
        "role": "user",
        "parts": [{"functionResponse": {"name": "read_file", "response": {"output": "x = 1"}}}],
    },
    {"role": "model", "parts": [{"text": "Done."}]},
)

# --- others

PI: tuple[dict[str, Any], ...] = (
    {"type": "session", "id": "s", "cwd": "/tmp"},  # noqa: S108 - a name
    {
        "type": "message",
        "timestamp": DAY.format(0),
        "message": {"role": "user", "content": [{"type": "text", "text": "Fix it."}]},
    },
    {
        "type": "message",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Reading."},
                {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.py"}},
            ],
            "usage": {"input": 5, "output": 7, "cacheRead": 11, "cacheWrite": 13},
        },
    },
    {
        "type": "message",
        "message": {
            "role": "toolResult",
            "toolCallId": "c1",
            "toolName": "read",
            "content": [{"type": "text", "text": "x = 1"}],
        },
    },
)
CHAT: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "Fix it."},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c", "function": {"name": "read", "arguments": '{"path": "a"}'}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "x = 1"},
    {"role": "assistant", "content": "Done."},
)
EXPORTED: tuple[dict[str, Any], ...] = (
    {"refold": 1, "session": "s"},
    {"seq": 1, "id": "a", "at": 1, "kind": "session", "version": 1, "body": {"profile": "x"}},
    *(
        {
            "seq": seq,
            "id": f"{seq}",
            "at": 1_790_000_000_000,
            "kind": "message",
            "version": 1,
            "body": {"parts": [part], "kind": kind},
        }
        for seq, kind, part in (
            (2, "request", {"content": "Fix it.", "part_kind": "user-prompt"}),
            (3, "response", {"content": "Done.", "part_kind": "text"}),
            (4, "request", {"content": "Wrong.", "part_kind": "user-prompt"}),
        )
    ),
    {"seq": 5, "id": "e", "at": 1, "kind": "rewind", "version": 1, "body": {"to": 3}},
    {"entries": 5},
)

# --- Qwen Code


def qwen(kind, uuid, parent, *parts, **more):
    role = "model" if kind == "assistant" else "user"
    message = {} if kind == "system" else {"message": {"role": role, "parts": [*parts]}}
    return {
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s",
        "timestamp": DAY.format(0),
        "type": kind,
        "cwd": "/projects/shop",
        "gitBranch": "main",
        **message,
        **more,
    }


def qwen_system(uuid, parent, subtype, **payload):
    return qwen("system", uuid, parent, subtype=subtype, systemPayload=payload)


def qwen_call(call):
    return {"functionCall": {"id": call, "name": "read_file", "args": {"path": "a.py"}}}


def qwen_result(uuid, parent, call, status="success", **response):
    part = {"functionResponse": {"id": call, "name": "read_file", "response": response}}
    return qwen(
        "tool_result", uuid, parent, part, toolCallResult={"callId": call, "status": status}
    )


QWEN: tuple[dict[str, Any], ...] = (
    qwen("user", "u1", None, {"text": "Fix it."}),
    qwen_system("t1", "u1", "ui_telemetry", uiEvent={}),
    qwen(
        "assistant",
        "a1",
        "t1",
        {"text": "Hm.", "thought": True},
        {"text": "Reading."},
        qwen_call("c1"),
        model="qwen3-coder",
        usageMetadata={
            "promptTokenCount": 29,
            "candidatesTokenCount": 7,
            "cachedContentTokenCount": 11,
        },
    ),
    qwen("assistant", "a1", "t1", qwen_call("c2"), model="qwen3-coder"),
    qwen_result("r1", "a1", "c1", output="x = 1"),
    qwen_result("r2", "r1", "c2", "error", error="no such file"),
    qwen("assistant", "a2", "r2", {"text": "Done."}),
    qwen("user", "u2", "a2", {"text": "Wrong."}),
    qwen("assistant", "a3", "u2", {"text": "Sorry."}),
    qwen_system("t2", "a2", "rewind"),
    qwen("user", "u3", "t2", {"text": "/stats"}),
    qwen_system("t3", "u3", "slash_command", phase="result", rawCommand="/stats"),
    qwen_system("t4", "t3", "chat_compression", compressedHistory=[]),
    qwen_system("t5", "t4", "custom_title", customTitle="Fixing"),
    qwen("user", "u4", "t5", {"text": "Better this."}),
    qwen("assistant", "a4", "u4", {"text": "Yes."}),
)

# --- opencode


def opencode_message(role, *parts, **more):
    return {"role": role, "time": {"created": 1_779_796_800_000}, **more}, [*parts]


def opencode_tool(call, status, **state):
    return {
        "type": "tool",
        "tool": "read",
        "callID": call,
        "state": {"status": status, "input": {"path": "a.py"}, **state},
    }


def opencode_text(text, **more):
    return {"type": "text", "text": text, **more}


STEP = {"type": "step-start"}
OPENCODE: tuple[tuple[dict[str, Any], list[dict[str, Any]]], ...] = (
    opencode_message(
        "user",
        opencode_text("Fix it."),
        opencode_text("for the screen", ignored=True),
        {"type": "file", "mime": "image/png", "url": "data:image/png;base64,aGk="},
        {"type": "file", "mime": "text/plain", "filename": "a.py", "url": "file:///a.py"},
        {"type": "file", "mime": "application/pdf", "filename": "a.pdf", "url": "file:///a.pdf"},
    ),
    opencode_message(
        "assistant",
        STEP,
        {"type": "reasoning", "text": "Hm."},
        opencode_text("Reading."),
        opencode_tool("c1", "completed", output="x = 1", time={"end": 5, "compacted": 9}),
        opencode_tool("c2", "error", error="no such file"),
        {"type": "step-finish", "reason": "tool-calls"},
        STEP,
        opencode_tool("c3", "running"),
        modelID="gpt-5-mini",
        tokens={"input": 18, "output": 5, "reasoning": 2, "cache": {"read": 11, "write": 0}},
    ),
    opencode_message("assistant", opencode_text("Lost."), error={"name": "APIError"}),
    opencode_message("assistant", opencode_text("As far"), error={"name": "MessageAbortedError"}),
    opencode_message("user", {"type": "compaction", "auto": True}),
    opencode_message("assistant", opencode_text("They fixed it."), summary=True),
    opencode_message("user", opencode_text("Better this.")),
    opencode_message("assistant", STEP, opencode_text("Yes.")),
    opencode_message("user", opencode_text("Wrong.")),
    opencode_message("assistant", opencode_text("Sorry.")),
)
"""Messages with their parts; the last two were taken back."""
OPENCODE_ID = "ses_e0c3fa8f8ffe0hdKw8vxbpEb2j"


def opencode_rows(messages=OPENCODE):
    """Each message and part with its id, which grow."""
    for nth, (message, parts) in enumerate(messages):
        places = [(f"prt_{nth:03}_{place:03}", part) for place, part in enumerate(parts)]
        yield f"msg_{nth:03}", message, places


def opencode_database(path: Path, messages=OPENCODE, session=OPENCODE_ID, revert="msg_008"):
    """A database of opencode with this session, or with these messages added to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(
            "CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, parent_id TEXT,"
            " directory TEXT, title TEXT, revert TEXT, time_updated INTEGER);"
            "CREATE TABLE IF NOT EXISTS message (id TEXT PRIMARY KEY, session_id TEXT,"
            " time_created INTEGER, data TEXT);"
            "CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, message_id TEXT,"
            " session_id TEXT, data TEXT);"
        )
        reverted = json.dumps({"messageID": revert}) if revert else None
        row = (session, "ses_parent", "/projects/shop", "Fixing", reverted, 1_779_796_900_000)
        db.execute("INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?)", row)
        for id_, message, parts in opencode_rows(messages):
            key = f"{session[-4:]}{id_}" if session != OPENCODE_ID else id_
            row = (key, session, message["time"]["created"], json.dumps(message))
            db.execute("INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?)", row)
            for part_id, part in parts:
                row = (f"{key}{part_id}", key, session, json.dumps(part))
                db.execute("INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?)", row)


def opencode_storage(storage: Path, messages=OPENCODE) -> Path:
    """The same as files of JSON, as versions before 1.2 wrote them."""
    session = storage / "session" / "global" / f"{OPENCODE_ID}.json"
    info = {"id": OPENCODE_ID, "directory": "/projects/shop", "title": "Fixing"}
    info |= {"parentID": "ses_parent", "revert": {"messageID": "msg_008"}}
    files = {session: info | {"time": {"updated": 1_779_796_900_000}}}
    for id_, message, parts in opencode_rows(messages):
        files[storage / "message" / OPENCODE_ID / f"{id_}.json"] = message | {"id": id_}
        for part_id, part in parts:
            files[storage / "part" / id_ / f"{part_id}.json"] = part | {"id": part_id}
    for path, value in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    return session


FILES = {
    "Claude Code": lines(*CLAUDE),
    "Qwen Code": lines(*QWEN),
    "Codex": lines(*CODEX),
    "old Codex": lines(*OLD_CODEX),
    "Copilot CLI": lines(*COPILOT),
    "Gemini CLI": json.dumps(GEMINI_FILE, indent=2).encode(),
    "Gemini CLI lines": lines(*GEMINI_LINES),
    "Gemini CLI chat": json.dumps(GEMINI_CHAT).encode(),
    "pi": lines(*PI),
    "OpenAI chat": json.dumps(CHAT).encode(),
    "Refold": lines(*EXPORTED),
}
"""A small file of each kind; the format is in the name."""
