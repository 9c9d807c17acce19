"""The same conversation on each surface: a chat, an agent with the capability, a service.

    async def test_it(surface, provider):
        await surface.play(["hello", "read a.txt"], profile="co-cli", max_history_messages=10)
        assert len(provider.asked[-1].messages) <= 10

`surface` is one after the other. A long conversation that many tests look at is played once, with
`playing`. What the model received is in `provider.asked`, and what was asked
for summaries in `provider.folds`. Settings are given by their names in files. A prompt that begins
with "read " has the model read that file, by a call; "/compact" asks for a fold, as one does there.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx2
import pytest
from amounts import PROFILE
from openai import AsyncOpenAI
from project_paths import DOCS
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from refold_commands import Terminal
from serving import asking
from terminal import tmux
from terminal.chatting_in import Talk
from terminal.pieces import Asked, Call
from terminal.provider import MODEL, Provider

from refold import Refold
from refold.log import CODEC
from refold.service.service import Service
from refold.settings import Serve, load_settings
from refold.stores import open_store

# As a service does for its first fold. That takes seconds, and the tests go on meanwhile.
import_module("pydantic_ai.models.anthropic")
HOMES = ("CONFIG", "DATA", "STATE")
_PATIENCE = 100  # tenths of a second


def answer(asked: Asked) -> Any:
    """Read a file when told to, else say what was heard."""
    said = asked.messages[-1]
    if said["role"] == "user" and asked.prompt.startswith("read "):
        return [Call("read_file", {"path": asked.prompt[5:]})]
    return f"You said: {asked.prompt[:40]}"


def toml(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{name} = {toml(one)}" for name, one in value.items()) + "}"
        case list():
            return f"[{', '.join(map(toml, value))}]"
        case _:
            return json.dumps(value)


class Played:
    """Plays conversations on one surface, in a folder with settings of its own."""

    instructions = ""

    def __init__(self, folder: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.provider = provider
        monkeypatch.chdir(folder)
        self.environment = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in HOMES}
        for name, home in self.environment.items():
            monkeypatch.setenv(name, home)

    @property
    def notes(self) -> str:
        """What the daily files hold."""
        files = (self.folder / "data" / "refold" / "memory").glob("*.md")
        return "\n".join(file.read_text(encoding="utf-8") for file in sorted(files))

    @property
    def store(self) -> str:
        return f"sqlite:///{self.folder / 'refold.db'}"

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def settle(self, settings: dict[str, Any], window: int | None) -> None:
        """Write the settings into the user's file; `__` in a name is a dot."""
        names = {name: name.replace("__", ".") for name in settings}
        lines = [f"{names[name]} = {toml(value)}" for name, value in settings.items()]
        if window:
            lines += [f'[models."{name}"]\nwindow = {window}' for name in (MODEL, f"local:{MODEL}")]
        path = self.folder / "config" / "refold" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines), encoding="utf-8")

    async def play(
        self,
        prompts: list[str],
        *,
        profile: str = "balanced",
        window: int | None = None,
        session: str = "s",
        instructions: str = "",
        **settings: Any,
    ) -> None:
        """Say these one after the other, each once the one before is answered.

        The agent, and the client of the service, have these instructions. A chat has its own.
        """
        self.settle(settings, window)
        self.instructions = instructions
        await self._say(prompts, profile, session)

    async def play_apart(self, prompts: list[str], *, profile: str, **settings: Any) -> None:
        """Say each of these in a process of its own, or as a program that starts again."""
        self.settle(settings, None)
        for prompt in prompts:
            await self._say([prompt], profile, "s")

    async def _say(self, prompts: list[str], profile: str, session: str) -> None:
        raise NotImplementedError

    async def entries(self, *kinds: type[Any], session: str = "s") -> list[Any]:
        """What the log holds of these kinds."""
        async with open_store(self.store) as store:
            values = map(CODEC.decode, await store.log().read(session))
            return [value for value in values if isinstance(value, kinds)]


class InChat(Played):
    """`refold chat`, in a process of its own, that reads its prompts from a pipe."""

    terminal: Terminal
    short = False
    """Whether it is `refold chat -p`, once for each prompt."""
    printed = ""
    """What the newest chat printed."""

    async def _say(self, prompts: list[str], profile: str, session: str) -> None:
        if self.short:
            for prompt in prompts:
                await self.prompt(prompt, profile=profile, session=session)
            return
        lines = [
            f"{prompt}\nyes\n" if prompt == "/compact" else f"{prompt}\n" for prompt in prompts
        ]
        done = await self._run(["--plain"], profile, session, given="".join(lines))
        self.printed = done.stdout + done.stderr
        assert done.returncode == 0, self.printed

    async def prompt(self, text: str, *options: str, profile: str, session: str = "s") -> Any:
        """`refold chat -p TEXT`, with the settings of the last play."""
        done = await self._run(["-p", text, *options], profile, session, given="")
        self.printed = done.stdout + done.stderr
        assert done.returncode == 0, self.printed
        return done

    async def _run(self, options: list[str], profile: str, session: str, **streams: Any) -> Any:
        named = [session] if session else []
        arguments = ["chat", *named, "-m", f"local:{MODEL}", "--no-board", *options]
        arguments += ["--base-url", self.provider.url, "--profile", profile, "--files", "."]
        environment = {**self.environment, "REFOLD_STORE": self.store}
        return await asyncio.to_thread(self.terminal.run, *arguments, env=environment, **streams)


class InTerminal(Played):
    """`refold chat` in a real terminal, where each prompt is typed."""

    screens: list[str]
    """What was to be seen after each turn."""

    async def _say(self, prompts: list[str], profile: str, session: str) -> None:
        await asyncio.to_thread(self._type, prompts, profile, session)

    def _type(self, prompts: list[str], profile: str, session: str) -> None:
        self.screens = []
        with closing(tmux.Terminal(self.folder)) as terminal:
            talk, provider = Talk(terminal, self.provider), self.provider
            options = ["--profile", profile, "--no-board", "--files", "."]
            environment = {**self.environment, "REFOLD_STORE": self.store}
            talk.start(session, *options, env=environment, cwd=self.folder, columns=100)
            for prompt in prompts:
                before = len(provider.asked)
                talk.type(prompt)
                provider.wait_until(lambda before=before: len(provider.asked) > before)
                self.screens.append(talk.idle())
            talk.leave()


class WithCapability(Played):
    """An agent with `Refold(...)`."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.options: dict[str, Any] = {}
        """More arguments of it."""
        self.events: list[dict[str, Any]] = []

    async def _say(self, prompts: list[str], profile: str, session: str) -> None:
        async with (
            AsyncOpenAI(api_key="none", base_url=self.provider.url, max_retries=0) as client,
            Refold(self.store, profile=profile, watch=self._watch, **self.options) as memory,
        ):
            model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))
            agent = Agent(model, capabilities=[memory], instructions=self.instructions or None)

            @agent.tool_plain
            def read_file(path: str) -> str:
                return (self.folder / path).read_text(encoding="utf-8")

            for prompt in prompts:
                if prompt == "/compact":
                    await (await memory.session(session, model)).compact()
                elif prompt == "/context clear":
                    await (await memory.session(session, model)).clear()
                else:
                    await agent.run(prompt, conversation_id=session)

    def _watch(self, _: str, event: Any) -> None:
        self.events.append(event.as_json())


class ThroughService(Played):
    """A client of `refold serve` that sends all it has said so far.

    The service has a key of its own for the provider, or passes on the client's.
    """

    key = "PROVIDER_KEY"
    client_key = "the-clients-own"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._said: dict[str, list[dict[str, Any]]] = {}
        self.folded: dict[str, Any] = {}
        """The answer to the newest request for a fold."""
        self.body: dict[str, Any] = {}
        """More fields of each request."""
        self.streams: list[str] = []
        """The answers that were streamed."""

    async def _say(self, prompts: list[str], profile: str, session: str) -> None:
        async with self.running(profile) as client:
            await self.talk(client, prompts, session)

    @asynccontextmanager
    async def running(self, profile: str, **serve: Any) -> AsyncGenerator[httpx2.AsyncClient]:
        """A client of the service, which runs with these settings of [serve] too."""
        upstream = {"name": "up", "base_url": self.provider.url, "key": self.key}
        settings = load_settings(profile)
        values = {"upstreams": [upstream], "times": {"store": 30}, **serve}
        settings = replace(settings, serve=Serve.model_validate(values))
        async with open_store(self.store) as store:
            service = Service(settings, store, self.store, local=True)
            async with asking(service) as client:
                yield client
                # A service outlives its conversations, and makes their folds meanwhile.
                for _ in range(_PATIENCE):
                    infos = (await store.log().sessions()).sessions
                    logs = [await store.log().outlined(info.session) for info in infos]
                    if not any(one.outline.running for one in logs):
                        break
                    await asyncio.sleep(0.1)

    async def talk(
        self,
        client: httpx2.AsyncClient,
        prompts: list[str],
        session: str = "s",
        before: list[dict[str, Any]] | None = None,
    ) -> list[dict[str, Any]]:
        """Say these through the service; returns the history as its client has it."""
        said = self._said.setdefault(session, [])
        if before is not None:
            said[:] = before
        for prompt in prompts:
            if prompt == "/compact":
                await self.fold(client, session)
                continue
            said.append({"role": "user", "content": prompt})
            while (reply := await self.ask(client, said, session)).get("tool_calls"):
                said.append(reply)
                for call in reply["tool_calls"]:
                    path = json.loads(call["function"]["arguments"])["path"]
                    text = (self.folder / path).read_text(encoding="utf-8")
                    said.append({"role": "tool", "tool_call_id": call["id"], "content": text})
            said.append(reply)
        return said

    async def fold(self, client: httpx2.AsyncClient, session: str) -> None:
        got = await client.post(f"/api/v1/sessions/{session}/folds", json={"wait": True})
        self.folded = got.json()
        assert got.status_code in (200, 409), got.text

    async def ask(
        self, client: httpx2.AsyncClient, said: list[Any], session: str, tools: Any = None
    ) -> Any:
        """Send this history; the model's answer."""
        headers = {"authorization": f"Bearer {self.client_key}", "refold-session": session}
        function = {"name": "read_file", "parameters": {"type": "object", "properties": {}}}
        tools = tools or [{"type": "function", "function": function}]
        system = {"role": "system", "content": self.instructions}
        messages = [system, *said] if self.instructions else said
        body = {"model": MODEL, "messages": messages, "tools": tools, **self.body}
        got = await client.post("/v1/chat/completions", json=body, headers=headers)
        assert got.status_code == 200, got.text
        if not self.body.get("stream"):
            return got.json()["choices"][0]["message"]
        self.streams.append(got.text)
        data = [line[6:] for line in got.text.splitlines() if line.startswith("data: {")]
        deltas = [one["delta"] for line in data for one in json.loads(line).get("choices", ())]
        content = "".join(delta.get("content") or "" for delta in deltas)
        return {"role": "assistant", "content": content}


KINDS = {
    "chat": InChat,
    "terminal": InTerminal,
    "capability": WithCapability,
    "service": ThroughService,
}
SURFACES = ["chat", "capability", "service"]
PLAYED = [*SURFACES, *(["terminal"] if PROFILE in {"nightly", "thorough"} else [])]
"""Where long conversations are played; to type them takes minutes."""


@contextmanager
def playing(name: str, folder: Path, quick: Path) -> Iterator[Played]:
    """One of the surfaces, for a fixture that serves a whole file of tests."""
    provider = Provider(otherwise=answer)
    provider.start()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv(ThroughService.key, "the-services-own")
        played = KINDS[name](folder, provider, monkeypatch)
        if isinstance(played, InChat):
            played.terminal = Terminal(folder, quick)
        try:
            yield played
        finally:
            provider.stop()


@pytest.fixture
def provider():
    """A scripted provider that reads files when told to."""
    serving = Provider(otherwise=answer)
    serving.start()
    yield serving
    serving.stop()


@pytest.fixture
def chat(tmp_path, provider, monkeypatch, terminal):
    played = InChat(tmp_path, provider, monkeypatch)
    played.terminal = terminal
    return played


@pytest.fixture
def capability(tmp_path, provider, monkeypatch):
    return WithCapability(tmp_path, provider, monkeypatch)


@pytest.fixture
def service(tmp_path, provider, monkeypatch):
    monkeypatch.setenv(ThroughService.key, "the-services-own")
    return ThroughService(tmp_path, provider, monkeypatch)


@pytest.fixture
def passing_service(service):
    """A service that has no key, so that it cannot ask a model by itself."""
    service.key = "pass"
    return service


@pytest.fixture(params=["chat", "capability", "service", "passing_service"])
def surface(request):
    """Each surface, one after the other."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def short_chat(chat):
    chat.short = True
    return chat


def conversation(asked: Asked) -> list[dict[str, Any]]:
    """The messages of a request, without what an agent says of itself and its tools."""
    return [message for message in asked.messages if message["role"] not in ("system", "developer")]


def texts(asked: Asked) -> list[str]:
    """What stands in each message of a request."""
    return [str(message.get("content") or "") for message in asked.messages]


def turn_by_turn(profile: str) -> list[dict[str, str]]:
    """The rows of a profile's table in the documentation, by the names of its columns."""
    page = (DOCS / "reference" / "turn-by-turn.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {profile}\n")[1].split("\n## ")[0]
    head, _, *rows = [line for line in section.splitlines() if line.startswith("|")]
    names, *found = [[cell.strip() for cell in row.split("|")[1:-1]] for row in (head, *rows)]
    return [dict(zip(names, cells, strict=True)) for cells in found]
