"""A chat for the tests of its commands: a real conversation, and a surface that is scripted."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from io import StringIO

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from requirement_report import ran
from rich.console import Console

from refold.cli.chat import commands
from refold.cli.chat.conversation import Conversation, Parts
from refold.errors import InvalidInput
from refold.integrations.pydantic_ai.history import message_of
from refold.settings import load_settings
from refold.stores import MemoryStore


class FakeSurface:
    """Keeps what it is shown as text, and answers as it was told to."""

    def __init__(self, width=80):
        self.width = width
        self.shown = []
        self.questions = []
        self.answers = []
        self.picks = []
        self.titles = []
        self.rows = []
        self.refreshed = 0
        self.events = []

    def show(self, what, *, gap=True):  # noqa: ARG002 - a surface takes it
        console = Console(file=StringIO(), width=self.width, force_terminal=False)
        console.print(what)
        self.shown.append(console.file.getvalue())

    def on_event(self, events):
        self.events.append(events)

    async def queued(self):
        return []

    def settle(self): ...

    def refresh(self):
        self.refreshed += 1

    async def ask(self, question, answers):
        self.questions.append((question, tuple(answers)))
        if not self.answers and question == "Fold anyway?":
            return "yes"  # a few short messages are folded in many tests
        return self.answers.pop(0) if self.answers else answers[0]

    async def pick(self, title, rows):
        self.titles.append(title)
        self.rows = [*rows]
        chosen = self.picks.pop(0) if self.picks else None
        return chosen(self.rows) if callable(chosen) else chosen

    @property
    def text(self):
        return "\n".join(self.shown)

    @property
    def last(self):
        return self.shown[-1]


class OfferingSurface(FakeSurface):
    """One that can put a text where one types."""

    offered = None

    def offer(self, text):
        self.offered = text


def prompt_in(messages):
    parts = [part for message in messages for part in message.parts]
    return next(str(p.content) for p in reversed(parts) if isinstance(p, UserPromptPart))


def answer(messages, _):
    """Reads a file where it is asked to, else repeats what was said."""
    prompt = prompt_in(messages)
    last = messages[-1].parts[-1]
    if prompt.startswith("read ") and isinstance(last, UserPromptPart):
        return ModelResponse(parts=[ToolCallPart("read_file", {"path": prompt[5:]})])
    return ModelResponse(parts=[TextPart(f"I heard: {prompt[:2000]}")])


async def streamed(messages, info):
    for nth, part in enumerate(answer(messages, info).parts):
        if isinstance(part, ToolCallPart):
            yield {nth: DeltaToolCall(part.tool_name, '{"path": "a.txt"}', tool_call_id="c1")}
        else:
            yield part.content


def model_of(name="large", window=200_000):
    profile = {"context_window": window} if window else {}
    return FunctionModel(answer, stream_function=streamed, model_name=name, profile=profile)


def read_file(path: str) -> str:
    """Read a file."""
    return f"the content of {path}\n" * 20


class FakeChat:
    """What commands work on."""

    def __init__(self, conversation, surface, models):
        self.conversation = conversation
        self.surface = surface
        self.tenant = "default"
        self.known_sessions = ()
        self.known_models = tuple(models)
        self.left = False
        self.tails = 0

    async def leave(self):
        self.left = True

    async def show_tail(self):
        self.tails += 1

    async def note_endpoint(self): ...

    async def say(self, *prompts):
        ran("chat")
        for prompt in prompts:
            end = await self.conversation.turn(prompt, self.surface.on_event)
            assert end.how == "answered", end

    async def type(self, line):
        """Type a command; what it shows."""
        ran("chat")
        before = len(self.surface.shown)
        await commands.run(self, line)
        return "".join(self.surface.shown[before:])

    async def head(self):
        return await self.conversation.log.head(self.conversation.name)

    async def model_context(self):
        """What the model would be sent: the words of each message."""
        session = await self.conversation.session()
        messages = map(message_of, await session.next_messages())
        return [str(getattr(m.parts[-1], "content", m.parts[-1])) for m in messages]


def chat_with(  # noqa: PLR0913 - all of them have a default
    models=None, *, profile=None, surface=None, name="talk", board=None, store=None
):
    """A chat over a store in memory, or another one."""
    known = models or {"function:large": model_of(), "function:small": model_of("small", 3_000)}

    def named(model):
        if model not in known:
            raise InvalidInput(f"There is no model {model!r}.", f"Did you mean {min(known)}?")
        return known[model]

    surface = surface or FakeSurface()
    parts = Parts(
        store or MemoryStore(),
        Agent(instructions="Be brief."),
        next(iter(known.values())),
        lambda: load_settings(profile),
        named,
        toolsets=(FunctionToolset([read_file]),),
        branch=board,
    )
    conversation = Conversation(parts, name, surface.on_event, surface.refresh)
    return FakeChat(conversation, surface, known)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder of its own, and no settings but what the tests set."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def talked():
    """A chat with a few turns, one of them with a tool."""
    chat = chat_with()
    await chat.say("my order is A-4711", "read a.txt", "and then?", "good")
    return chat
