"""The `copilot` profile as people run it: in a chat, with the capability, behind the service."""

# ruff: noqa: F811, F401 - fixtures are imported

import json

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from refold_commands import quick, terminal
from surfaces import capability, chat, passing_service, provider, service, texts
from terminal.pieces import Raw

from refold.fold.checkpoints import EMPTY
from refold.integrations.pydantic_ai.history import payload_of
from refold.log import CODEC, Author, FoldStarted, Message, Note, Opened, Span
from refold.stores import open_store

WINDOW = 20_000
SUMMARY = "The user counts prompts; four were answered."
LONG = "An answer that goes on. " * 200
COMPACTING = "Compacting conversation history."


def prompts(count: int, tokens: int = 500) -> list[str]:
    """So many prompts, each of about so many tokens; the provider counts five sixths of that."""
    return [f"Prompt {nth}: {'and so on ' * (tokens // 3)}" for nth in range(count)]


def until(share: float) -> list[str]:
    """Prompts that fill about this share of the window, with their answers."""
    return prompts(int(share * WINDOW / 530))


# What a person sees of it.


@pytest.mark.req("R131", "R042", "R044")
async def test_only_a_fold_that_blocks_shows_its_status(chat):
    await chat.play(until(0.3), profile="copilot", window=WINDOW, trigger__soft=0.4)
    assert COMPACTING not in chat.printed
    background = await chat.prompt(prompts(1, 3_000)[0], "--json", profile="copilot")
    names = [json.loads(line).get("type") for line in background.stdout.splitlines()]
    assert "session.compaction_start" in names
    assert "session.compaction_wait" not in names
    blocking = await chat.prompt(prompts(1, 18_000)[0], profile="copilot")
    assert COMPACTING in blocking.stderr


@pytest.mark.req("R125", "R126", "R127", "R128")
async def test_a_script_gets_the_events_of_the_session_as_json_lines(chat):
    await chat.play(until(0.6), profile="copilot", window=WINDOW)
    done = await chat.prompt(prompts(1, 11_000)[0], "--json", profile="copilot")
    *events, answer = map(json.loads, done.stdout.splitlines())
    assert answer["ended"] == "answered"
    names = [event["type"] for event in events]
    assert names == [
        "session.compaction_start",
        "session.compaction_wait",
        "session.compaction_complete",
        "session.usage_info",
    ]
    assert events[0]["trigger"] == "hard"
    assert events[2]["requestId"] == "chatcmpl-1"
    assert events[3]["messagesLength"] > 1


@pytest.mark.req("R128")
async def test_usage_follows_a_manual_fold(capability):
    capability.provider.summary = SUMMARY
    await capability.play([*prompts(4), "/compact"], profile="copilot")
    complete, usage = capability.events[-2:]
    assert complete["type"] == "session.compaction_complete"
    assert usage["type"] == "session.usage_info"
    assert usage["messagesLength"] == 8 - complete["messagesRemoved"] + 1


# Its workspace: checkpoints for people, and what they know of the work.


def workspace(surface):
    """The folder of the only session."""
    [folder] = (surface.folder / "data" / "refold" / "workspaces").iterdir()
    return folder


def checkpoints(surface) -> list[str]:
    return sorted(path.name for path in (workspace(surface) / "checkpoints").iterdir())


@pytest.mark.req("R104", "R105", "R106", "R126")
async def test_a_chat_keeps_a_workspace_with_its_checkpoints(chat):
    chat.provider.otherwise = LONG
    chat.provider.summary = f"Title: Counting prompts\n{SUMMARY}"
    await chat.play([*prompts(3, 20), "/session"], profile="copilot")
    assert str(workspace(chat)) in "".join(chat.printed.split())
    assert EMPTY in (workspace(chat) / "checkpoints" / "index.md").read_text()
    await chat.play(["/compact"], profile="copilot")
    folder = workspace(chat)
    assert checkpoints(chat) == ["001-counting-prompts.md", "index.md"]
    assert SUMMARY in (folder / "checkpoints" / "001-counting-prompts.md").read_text()
    assert "(001-counting-prompts.md)" in (folder / "checkpoints" / "index.md").read_text()
    assert (folder / "workspace.yaml").read_text() == "summary_count: 1\n"
    await chat.play(["/undo"], profile="copilot")
    assert checkpoints(chat) == ["index.md"]
    assert (folder / "workspace.yaml").read_text() == "summary_count: 0\n"


@pytest.mark.req("R104", "R126")
async def test_events_name_the_file_of_the_checkpoint(chat):
    await chat.play(until(0.6), profile="copilot", window=WINDOW)
    done = await chat.prompt(prompts(1, 11_000)[0], "--json", profile="copilot")
    [complete] = [one for one in map(json.loads, done.stdout.splitlines()) if "success" in one]
    assert complete["checkpointNumber"] == 1
    assert complete["checkpointPath"] == str(workspace(chat) / "checkpoints" / checkpoints(chat)[0])


@pytest.fixture(params=["chat", "capability", "service"])
def surface(request):
    """Each surface that can summarize, one after the other."""
    return request.getfixturevalue(request.param)


@pytest.mark.req("R068", "R104")
async def test_folds_show_the_work_as_the_workspace_describes_it(surface, provider):
    provider.summary, provider.otherwise = SUMMARY, LONG
    settings = {"profile": "copilot", "workspace__keep": "always"}
    await surface.play(prompts(3, 20), **settings)
    folder = workspace(surface)
    (folder / "plan.md").write_text("Count to ten, then stop.")
    (folder / "todo.md").write_text("- [ ] four")
    (folder / "agent.md").write_text("The counting agent.")
    (folder / "skills").mkdir()
    (folder / "skills" / "arithmetic.md").write_text("Add one at a time.")
    await surface.play(["/compact", "And now?"], **settings)
    sent = "\n".join(texts(provider.asked[-1]))
    for heading, text in [
        ("Current plan", "Count to ten, then stop."),
        ("Todo", "- [ ] four"),
        ("Skills in use", "- arithmetic:\nAdd one at a time."),
        ("Active agent", "The counting agent."),
    ]:
        assert f"## {heading}\n{text}" in sent
    assert checkpoints(surface)[-1] == "index.md"
    assert len(checkpoints(surface)) == 2


async def test_no_workspace_is_kept_unless_it_is_set(capability):
    await capability.play(prompts(3), profile="copilot")
    assert not (capability.folder / "data" / "refold" / "workspaces").exists()


async def test_what_is_forgotten_leaves_the_workspace(chat, terminal):
    chat.provider.summary, chat.provider.otherwise = SUMMARY, LONG
    await chat.play([*prompts(3, 20), "/compact"], profile="copilot")
    (workspace(chat) / "plan.md").write_text("Mine.")
    environment = {**chat.environment, "REFOLD_STORE": chat.store}
    terminal.does("forget", "s", "--yes", env=environment)
    assert [path.name for path in workspace(chat).iterdir()] == ["plan.md"]


# Hooks of the user.


def hook(surface, *lines: str) -> str:
    """A command that keeps what it is given, and then does this."""
    script = surface.folder / "hook.sh"
    script.write_text("\n".join([f"cat >> {surface.folder}/given.jsonl", *lines]))
    return f"sh {script}"


def given(surface) -> list[dict]:
    path = surface.folder / "given.jsonl"
    return [*map(json.loads, path.read_text().replace("}{", "}\n{").splitlines())]


@pytest.mark.req("R133", "R134")
@pytest.mark.parametrize("name", ["preCompact", "PreCompact"])
async def test_a_hook_runs_before_a_fold_and_is_told_of_it(surface, provider, name):
    provider.summary, provider.otherwise = SUMMARY, LONG
    command = {"type": "command", "command": hook(surface, "exit 1")}
    settings = {f"hooks__{name}": [{"matcher": "manual", "hooks": [command]}]}
    await surface.play([*prompts(3, 20), "/compact"], profile="copilot", **settings)
    [told] = given(surface)
    assert told["hook_event_name"] == "PreCompact"
    assert (told["session_id"], told["sessionId"]) == ("s", "s")
    assert (told["trigger"], told["custom_instructions"]) == ("manual", "")
    assert told["cwd"] == str(surface.folder)
    assert provider.folds  # though the hook failed


@pytest.mark.req("R133")
@pytest.mark.parametrize(
    "does", ["echo 'Not now.' >&2; exit 2", 'echo \'{"decision": "block", "reason": "Not now."}\'']
)
async def test_a_hook_blocks_a_fold(chat, does):
    chat.provider.otherwise = LONG
    settings = {"profile": "copilot", "hooks__pre_compact": [hook(chat, does)]}
    await chat.play([*prompts(3, 20), "/compact", "Still there?"], **settings)
    assert "A preCompact hook blocked the fold: Not now." in " ".join(chat.printed.split())
    assert not chat.provider.folds
    assert len(chat.provider.asked) == 4


@pytest.mark.req("R133")
async def test_a_hook_that_hangs_is_ended_and_one_of_automatic_folds_is_told_so(chat):
    slow = {"command": hook(chat, "sleep 600"), "timeout": 0.5, "trigger": "auto"}
    await chat.play(until(0.6), profile="copilot", window=WINDOW, hooks__preCompact=[slow])
    await chat.prompt(prompts(1, 11_000)[0], profile="copilot")
    [told] = given(chat)
    assert (told["trigger"], told["reason"]) == ("auto", "hard")
    assert chat.provider.folds


async def test_no_command_of_a_project_is_run_unless_the_user_trusts_it(chat):
    chat.provider.summary, chat.provider.otherwise = SUMMARY, LONG
    chat.write("refold.toml", f"[hooks]\npreCompact = {json.dumps([hook(chat)])}\n")
    await chat.play([*prompts(3, 20), "/compact"], profile="copilot")
    assert chat.provider.folds
    assert not (chat.folder / "given.jsonl").exists()
    assert "hooks.pre_compact" in chat.printed
    chat.terminal.does("trust", "--yes", env=chat.environment)
    await chat.play([*prompts(3, 20), "/compact"], profile="copilot")
    assert len(given(chat)) == 1


# What a fold that is asked for needs.


@pytest.mark.req("R137", "R043")
async def test_a_fold_needs_two_messages_and_a_request(chat):
    await chat.play(["/compact"], profile="copilot")
    assert "There is nothing to compact." in chat.printed
    messages = [ModelRequest([UserPromptPart(LONG)]), ModelResponse([TextPart(LONG)])]
    author = Author()
    async with open_store(chat.store) as store:
        drafts = [author.draft(Opened("pydantic-ai", "copilot"))]
        drafts += [author.draft(Message(payload_of(one))) for one in messages * 3]
        await store.log("default").append("imported", drafts, expected=0)
    await chat.play(["/compact"], profile="copilot", session="imported")
    assert "No request of this session was built yet" in " ".join(chat.printed.split())
    assert not chat.provider.folds
    chat.provider.summary = SUMMARY
    await chat.play(["Hello?", "/compact"], profile="copilot", session="imported")
    assert len(chat.provider.folds) == 1


# Memory.


@pytest.mark.req("R086")
async def test_a_process_that_takes_up_too_much_memory_folds_once(surface, provider):
    provider.summary, provider.otherwise = SUMMARY, LONG
    await surface.play(prompts(6, 20), profile="copilot", trigger__memory=0.00001)
    assert len(provider.folds) == 1
    assert len(provider.asked) == 6


# What the summarizer is given.


@pytest.mark.req("R060")
async def test_the_summarizer_is_given_the_instructions_apart_from_the_record(surface, provider):
    provider.summary, provider.otherwise = SUMMARY, LONG
    await surface.play(
        [*prompts(3, 20), "/compact"], profile="copilot", instructions="Speak like a clerk."
    )
    system = [one for one in provider.asked[-1].messages if one["role"] in ("system", "developer")]
    first_line = system[0]["content"].splitlines()[0]
    [asked] = provider.folds
    before, _, record = asked.prompt.partition("The record. Each entry")
    assert f"| {first_line}" in before
    assert first_line not in record.partition("End of the record.")[0]


# Telemetry.


@pytest.fixture
def spans(monkeypatch):
    """What the program's own OpenTelemetry has recorded."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("opentelemetry.trace.get_tracer", provider.get_tracer)
    return exporter


@pytest.mark.req("R129", "R126")
@pytest.mark.parametrize("name", ["capability", "service"])
async def test_telemetry_records_are_events_of_opentelemetry(request, provider, spans, name):
    provider.summary, provider.otherwise = SUMMARY, LONG
    surface = request.getfixturevalue(name)
    told = [*prompts(3, 20), "/compact"]
    await surface.play(told, profile="copilot", workspace__keep="always")
    [fold] = [one for one in spans.get_finished_spans() if one.name == "refold.fold"]
    start, complete = fold.events
    assert start.name == "session_compaction_start"
    assert start.attributes["conversationTokens"] > 1_000
    assert complete.name == "session_compaction_complete"
    assert complete.attributes["requestId"] == "chatcmpl-1"
    assert complete.attributes["checkpointNumber"] == 1
    assert complete.attributes["tokensRemoved"] > 500
    assert SUMMARY not in str(complete.attributes)


# What providers and their clients do of themselves.


@pytest.mark.req("R087", "R126")
async def test_a_providers_own_compaction_is_noted_and_replaces_nothing(service, provider):
    signal = {"type": "agent.thread_context_compacted", "thread": "t"}
    raw = f"event: {signal['type']}\ndata: {json.dumps(signal)}\n\n"
    provider.otherwise = ["I mention thread_context_compacted. ", Raw(raw), LONG]
    provider.summary = SUMMARY
    service.body = {"stream": True, "compactionControl": {"enabled": True}}
    await service.play([*prompts(3, 20), "/compact"], profile="copilot")
    assert provider.asked[-1].body["compactionControl"] == {"enabled": True}
    assert all(raw in one for one in service.streams)
    async with open_store(service.store) as store:
        log = store.log("default")
        entries = await log.read("s", Span(1, await log.head("s")))
    notes = [one.data for one in map(CODEC.decode, entries) if isinstance(one, Note)]
    assert notes == [{"gateway": "provider compacted", "signal": signal["type"]}] * 3
    assert len(provider.asked[-1].messages) == 5  # everything was sent until we folded it
    assert len(provider.folds) == 1
