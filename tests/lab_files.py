"""Session files as other programs write them, made by hand."""

import json
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

FILES = {
    "Claude Code": lines(*CLAUDE),
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
