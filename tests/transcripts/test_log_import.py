"""Recorded sessions go into a log as often as one likes: nothing is doubled, nothing is lost."""

import asyncio
import gzip
import json
from dataclasses import replace

import pytest
from lab_files import FILES, PI, claude, claude_call, claude_result, claude_said, lines
from project_paths import DATA

from refold.errors import SessionExists, SessionForgotten
from refold.log import Author, Message, Opened, Origin, Rewound, Span, Titled
from refold.stores import MemoryStore, open_store
from refold.transcripts import messages as make
from refold.transcripts.log_import import import_recording, without_last_answer
from refold.transcripts.programs import read_session
from refold.transcripts.recording import RecordedMessage, Recording

NAMED = (
    *("Claude Code", "Codex", "old Codex", "Copilot CLI", "Gemini CLI lines", "pi", "Qwen Code"),
)


@pytest.fixture
def log():
    return MemoryStore().log()


def read(tmp_path, data, name="some"):
    path = tmp_path / f"{name}.jsonl"
    path.write_bytes(data)
    return read_session(path)


def chat(*texts, id="s", program="claude", **more):  # noqa: A002 - the field's name
    """A recording of prompts and answers in turn."""
    made = []
    for nth, text in enumerate(texts):
        part = make.text(text) if nth % 2 else make.user_prompt(text)
        write = make.response if nth % 2 else make.request
        made.append(RecordedMessage(write([part], at=1_700_000_000_000 + nth), None))
    return Recording("some", tuple(made), {}, Origin(program, id), **more)


async def messages_of(log, session):
    return [entry.body for entry in await log.read(session) if entry.kind == Message.KIND]


async def view_of(log, session):
    entries = (await log.visible(session)).entries
    return [entry.body for entry in entries if entry.kind == Message.KIND]


async def words(log, session):
    """What the session's view says, in one string."""
    parts = [make.parts_of(make.parse(body)) for body in await view_of(log, session)]
    return " ".join(str(part["content"]) for each in parts for part in each)


@pytest.mark.parametrize("kind", NAMED)
async def test_a_second_import_adds_nothing(log, tmp_path, kind):
    recording = read(tmp_path, FILES[kind]).recording
    first = await import_recording(log, recording)
    assert first.new
    assert first.messages == len(recording.messages) > 1
    assert await messages_of(log, first.session) == [*recording.payloads]
    head = await log.head(first.session)
    assert await import_recording(log, recording) == (first.session, 0, False)
    assert await log.head(first.session) == head


@pytest.mark.parametrize("kind", NAMED)
async def test_a_session_that_grows_line_by_line_ends_as_one_imported_at_once(log, tmp_path, kind):
    records = FILES[kind].splitlines(keepends=True)
    for count in range(1, len(records) + 1):
        file = read(tmp_path, b"".join(records[:count]))
        if file.recording and file.recording.messages:
            result = await import_recording(log, file.recording)
            assert (await view_of(log, result.session))[: len(file.recording.messages)]
    whole = [make.parts_of(make.parse(payload)) for payload in file.recording.payloads]
    view = [make.parts_of(make.parse(body)) for body in await view_of(log, result.session)]
    assert view[: len(whole)] == whole
    assert len((await log.sessions()).sessions) == 1


async def test_what_is_being_written_is_added_once(log, tmp_path):
    records = (
        claude("user", "u1", None, "Fix it."),
        claude_said("a1", "u1", "m1", {"type": "thinking", "thinking": "Hm."}),
        claude_said("a2", "a1", "m1", {"type": "text", "text": "Reading."}),
        claude_said("a3", "a2", "m1", claude_call("c1")),
        claude_result("r1", "a3", "c1", "one"),
        claude_said("a4", "a3", "m1", claude_call("c2")),
        claude_result("r2", "a4", "c2", "two"),
        claude_said("a5", "r2", "m2", {"type": "text", "text": "Done."}),
    )
    for count in range(1, len(records) + 1):
        recording = without_last_answer(read(tmp_path, lines(*records[:count])).recording)
        result = await import_recording(log, recording)
    whole = read(tmp_path, lines(*records)).recording
    assert await messages_of(log, result.session) == [*whole.payloads[:-1]]
    assert (await import_recording(log, whole)).messages == 1
    assert await messages_of(log, result.session) == [*whole.payloads]


async def test_an_older_copy_changes_nothing(log):
    result = await import_recording(log, chat("a", "b", "c", "d"))
    assert await import_recording(log, chat("a", "b")) == (result.session, 0, False)
    assert "d" in await words(log, result.session)


async def test_who_went_back_sees_what_was_said_instead_and_the_log_has_both(log):
    result = await import_recording(log, chat("one", "two", "three", "four"))
    other = chat("one", "two", "five", "six")
    assert (await import_recording(log, other)).messages == 2
    assert await words(log, result.session) == "one two five six"
    assert len(await messages_of(log, result.session)) == 6
    for recording in (chat("one", "two", "three", "four"), other):  # two copies, taken in turn
        assert (await import_recording(log, recording)).messages == 0
    assert (await import_recording(log, chat("one", "two", "three", "four", "x"))).messages == 1
    assert await words(log, result.session) == "one two three four x"


async def test_a_session_continued_in_refold_stays_and_a_fork_gets_the_rest(log):
    result = await import_recording(log, chat("one", "two"))
    own = Author().draft(Message(make.request([make.user_prompt("mine")])))
    await log.append(result.session, [own], expected=None)
    assert await import_recording(log, chat("one", "two")) == (result.session, 0, False)
    for _ in range(2):
        again = await import_recording(log, chat("one", "two", "three", "four"))
        assert again.session == f"{result.session}-2"
    assert again.messages == 0
    assert await words(log, result.session) == "one two mine"
    assert await words(log, again.session) == "one two three four"
    assert (await log.info(again.session)).forked_from == result.session


async def test_what_was_taken_back_in_refold_does_not_return(log):
    result = await import_recording(log, chat("one", "two", "three", "four"))
    await log.append(result.session, [Author().draft(Rewound(3))], expected=None)
    assert (await import_recording(log, chat("one", "two", "three", "four"))).messages == 0
    assert await words(log, result.session) == "one two"


async def test_what_was_forgotten_stays_forgotten(log):
    recording = chat("one", "two", "three", "four")
    result = await import_recording(log, recording)
    await log.forget(result.session, Span(2, 3))
    longer = chat("one", "two", "three", "four", "five")
    assert (await import_recording(log, longer)).messages == 1
    assert await words(log, result.session) == "three four five"
    await log.forget(result.session)
    with pytest.raises(SessionForgotten):
        await import_recording(log, longer)


async def test_a_name_that_another_session_has_is_left_to_it(log):
    opened = Author().draft(Opened("pydantic-ai", "balanced"))
    await log.append("claude-s", [opened], expected=0)
    result = await import_recording(log, chat("one", "two"))
    assert result.session.startswith("claude-s-")
    assert await import_recording(log, chat("one", "two")) == (result.session, 0, False)
    other = MemoryStore().log()
    for name in ("claude-s", result.session):
        await other.append(name, [Author().draft(Opened("pydantic-ai", "x"))], expected=0)
    with pytest.raises(SessionExists):
        await import_recording(other, chat("one", "two"))


async def test_sessions_of_two_programs_or_with_two_ids_are_two(log):
    names = {
        (await import_recording(log, chat("a", "b", id=id_, program=program))).session
        for id_ in ("s", "t", "0191d893-d2a6-7c30-a8b8-5a8a49cfa23e")
        for program in ("claude", "codex")
    }
    assert len(names) == 6
    assert "codex-5a8a49cfa23e" in names


async def test_imports_at_the_same_time_add_everything_once(tmp_path):
    recording = chat(*(f"text {nth}" for nth in range(1_200)))
    async with open_store(f"sqlite:///{tmp_path}/log.db") as store:
        log = store.log()
        results = await asyncio.gather(*(import_recording(log, recording) for _ in range(4)))
        assert await messages_of(log, results[0].session) == [*recording.payloads]


async def test_other_times_usage_and_results_make_no_other_message(log):
    call = make.response([make.tool_call("read", "c", {"path": "a"})])
    result = make.request([make.tool_return("read", "c", "x = 1")], at=1_700_000_000_000)
    first = chat("one", "two")
    recording = replace(
        first, messages=(*first.messages, RecordedMessage(call), RecordedMessage(result))
    )
    await import_recording(log, recording)
    usage = {"usage": {"input_tokens": 9}}
    call = make.response([make.tool_call("read", "c", {"path": "a"})], at=1, more=usage)
    result = make.request([make.tool_return("read", "c", "[cleared]")])
    again = (*first.messages, RecordedMessage(call), RecordedMessage(result))
    assert (await import_recording(log, replace(recording, messages=again))).messages == 0


async def test_origin_title_and_times_are_kept(log):
    recording = replace(
        chat("<hint>", "x", "Fix the tests", "y"),
        origin=Origin("claude", "s", "/home/me/project", "main", "parent"),
    )
    result = await import_recording(log, recording, profile="cowagent")
    info = await log.info(result.session)
    assert info.origin == recording.origin
    assert (info.title, info.profile) == ("Fix the tests", "cowagent")
    named = replace(recording, title="Tests", messages=(*recording.messages, *chat("z").messages))
    await import_recording(log, named)
    info = await log.info(result.session)
    assert (info.title, info.origin) == ("Tests", recording.origin)
    await log.append(result.session, [Author().draft(Titled("Mine"))], expected=None)
    more = replace(named, messages=(*named.messages, *chat("0", "1").messages))
    await import_recording(log, more)
    assert (await log.info(result.session)).title == "Mine"
    fork = await log.fork(result.session, "fork")
    assert fork.origin == recording.origin
    await log.forget(result.session, Span(1, 1))
    assert (await log.info(result.session)).origin is None


async def test_a_title_of_the_prompt_is_forgotten_with_it(log):
    result = await import_recording(log, chat("The secret plan", "x"))
    assert (await log.info(result.session)).title == "The secret plan"
    await log.forget(result.session, Span(2, 2))
    assert (await log.info(result.session)).title is None


async def test_the_log_has_the_recording_s_times_but_none_in_the_future(log):
    future = RecordedMessage(make.response([make.text("b")]), 4_000_000_000_000)
    past = RecordedMessage(make.request([make.user_prompt("a")]), 1_600_000_000_000)
    recording = Recording("x", (past, future), {}, Origin("claude", "s"))
    result = await import_recording(log, recording, modified=1_500_000_000_000)
    opened, first, second = await log.read(result.session)
    assert opened.at == first.at == 1_600_000_000_000
    assert second.at < 4_000_000_000_000
    timeless = replace(recording, messages=chat("a").messages, origin=Origin("claude", "t"))
    result = await import_recording(log, timeless, modified=1_500_000_000_000)
    assert {entry.at for entry in await log.read(result.session)} == {1_500_000_000_000}


def test_a_line_that_is_being_written_is_not_counted_as_broken(tmp_path):
    data = FILES["pi"]
    for end in range(len(data) - 60, len(data)):
        assert read(tmp_path, data[:end]).broken == 0
    assert read(tmp_path, data + b'{"type": "mess\n' + lines(PI[-1])).broken == 1


def test_a_line_of_50_megabytes_is_read_whole(tmp_path):
    text = "long " * 10_000_000
    data = lines(claude("user", "u1", None, text), claude("user", "u2", "u1", "More."))
    recording = read(tmp_path, data).recording
    assert [len(message.payload) > 50_000_000 for message in recording.messages] == [True, False]


@pytest.mark.parametrize("kind", NAMED)
def test_files_say_where_their_session_is_from(tmp_path, kind):
    origin = read(tmp_path, FILES[kind]).recording.origin
    assert origin.program in kind.lower()
    assert origin.id == "s"


def test_a_sub_agent_names_its_parent_and_a_detached_head_is_no_branch(tmp_path):
    of_agent = {"isSidechain": True, "agentId": "a1", "cwd": "/p", "gitBranch": "HEAD"}
    data = lines(
        claude("user", "u1", None, "Look.", **of_agent),
        claude_said("x", "u1", "m1", {"type": "text", "text": "I looked."}, **of_agent),
    )
    origin = read(tmp_path, data).recording.origin
    assert origin == Origin("claude", "a1", "/p", None, "s")


def test_what_a_terminal_would_obey_is_no_folder(tmp_path):
    data = lines(claude("user", "u1", None, "Look.", cwd="/a\x1b]0;owned\x07", gitBranch="b\nc"))
    origin = read(tmp_path, data).recording.origin
    assert (origin.folder, origin.branch) == (None, None)


# --- sessions of real programs, counted again by plain JSON


def count_claude(records):
    """The calls and results on the main line, in order, without what the user took back."""
    line, seen, prompts = [], set(), {}
    for record in records:
        if record.get("isSidechain") or record["type"] not in {"user", "assistant"}:
            continue
        content = record["message"]["content"]
        blocks = content if isinstance(content, list) else [{"type": "text"}]
        if record["uuid"] in seen:
            continue
        seen.add(record["uuid"])
        prompt = record["type"] == "user" and not any("tool_use_id" in block for block in blocks)
        if prompt and not record.get("isCompactSummary"):
            before = prompts.get(record["parentUuid"])
            if before is not None and any(each["type"] == "assistant" for each in line[before:]):
                del line[before:]
            prompts[record["parentUuid"]] = len(line)
        line.append(record | {"blocks": blocks})
    blocks = [block for record in line for block in record["blocks"]]
    calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
    results = {block.get("tool_use_id") for block in blocks if block["type"] == "tool_result"}
    return sorted(calls), sorted(results & calls)


def count_codex(records):
    items = [record["payload"] for record in records if record["type"] == "response_item"]
    kinds = {"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"}
    calls = {item["call_id"] for item in items if item["type"] in kinds}
    outputs = {item["call_id"] for item in items if item["type"].endswith("_output")}
    return sorted(calls), sorted(outputs & calls)


REAL = sorted((DATA / "sessions").glob("*.gz"))


@pytest.mark.skipif(not REAL, reason="set REFOLD_DATA to the folder of recordings")
async def test_all_real_sessions_come_whole_and_only_once(log, tmp_path):
    sessions = []
    for packed in REAL:
        data = gzip.decompress(packed.read_bytes())
        file = read(tmp_path, data, packed.name.partition(".")[0])
        assert file.broken == 0
        for new in (True, False):
            result = await import_recording(log, file.recording)
            assert result.new == new
            assert result.messages == new * len(file.recording.messages)
        parts = [
            part
            for body in await messages_of(log, result.session)
            for part in make.parts_of(make.parse(body))
        ]
        found = [
            sorted(part["tool_call_id"] for part in parts if part["part_kind"] == kind)
            for kind in ("tool-call", "tool-return")
        ]
        records = [json.loads(line) for line in data.splitlines()]
        count = count_codex if "payload" in records[0] else count_claude
        assert tuple(found) == count(records), packed
        sessions.append(result.session)
    assert len({*sessions}) == len(REAL) == len((await log.sessions(limit=100)).sessions)
