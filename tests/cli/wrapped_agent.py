"""A small coding agent for tests of `refold wrap`: a program, and the one who tells it what to do.

As a program it takes the variables and flags of Claude Code or Codex, by the name it is called by,
and does what it is told through a socket: it asks its model, calls the tools that the model asks
for on its MCP servers, and says how it went. It imports nothing but the standard library.
"""

import asyncio
import http.client
import json
import os
import socket
import stat
import subprocess
import sys
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit


class Agent:
    """The program."""

    def __init__(self, name, arguments, environment):
        self.name = name
        self.messages = []
        self._mcp = {}
        self._lite = "AGENT_LITE" in environment
        if name == "codex":
            given = [
                value.partition("=")[::2] for flag, value in pairwise(arguments) if flag == "-c"
            ]
            settings = {key: json.loads(value) for key, value in given}
            self._url = settings["openai_base_url"] + "/responses"
            if "mcp_servers.refold.url" in settings:
                self._mcp = {"refold": settings["mcp_servers.refold.url"]}
        else:
            self._url = environment["ANTHROPIC_BASE_URL"] + "/v1/messages"
            for flag, _, value in (argument.partition("=") for argument in arguments):
                if flag == "--mcp-config":
                    servers = json.loads(value)["mcpServers"]
                    self._mcp = {key: server["url"] for key, server in servers.items()}
        self._headers = {"content-type": "application/json", "authorization": "Bearer own-login"}
        self._tools = None

    def ask(self, text, file="", rounds=8):
        """Ask the model, and do what it asks for; what came of it. `file` is what it reads."""
        self._file = file
        if text:  # else it asks the same again
            self.messages.append({"role": "user", "content": text})
        results = []
        for _ in range(rounds):
            status, body, headers = self._send()
            told = {"status": status, "session": headers.get("refold-session"), "results": results}
            if status != 200:
                return {**told, "error": body}
            calls = self._take(json.loads(body))
            if not calls:
                return {**told, "text": self._text}
            for call, tool, given in calls:
                result = self._call(call, tool, given)
                results.append(result)
                self._give_back(call, result)
        return {**told, "text": "There were too many rounds."}

    def _send(self):
        if self._tools is None:
            read = {"name": "Read", "parameters": {"type": "object", "properties": {}}}
            self._tools = [read, *(tool for server in self._mcp for tool in self._listed(server))]
        if self.name == "codex":
            body = {"model": "gpt-5-mini", "input": self.messages, "store": False}
            tools = [{"type": "function", **tool} for tool in self._tools]
            if self._lite:  # as it does for its newest models
                item = {"type": "additional_tools", "role": "developer", "tools": tools}
                return _post(self._url, {**body, "input": [item, *self.messages]}, self._headers)
        else:
            body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": self.messages}
            tools = [
                {"name": tool["name"], "input_schema": tool["parameters"]} for tool in self._tools
            ]
        if tools:
            body["tools"] = tools
        return _post(self._url, body, self._headers)

    def _take(self, answer):
        """Add the answer to the history; the calls in it."""
        if self.name == "codex":
            self.messages += answer["output"]
            items = answer["output"]
            self._text = "".join(
                part["text"]
                for item in items
                if item["type"] == "message"
                for part in item["content"]
            )
            calls = [item for item in items if item["type"] == "function_call"]
            return [
                (item["call_id"], item["name"], json.loads(item["arguments"])) for item in calls
            ]
        self.messages.append({"role": "assistant", "content": answer["content"]})
        blocks = answer["content"]
        self._text = "".join(block["text"] for block in blocks if block["type"] == "text")
        calls = [block for block in blocks if block["type"] == "tool_use"]
        return [(block["id"], block["name"], block["input"]) for block in calls]

    def _give_back(self, call, result):
        if self.name == "codex":
            item = {"type": "function_call_output", "call_id": call, "output": result}
        else:
            block = {"type": "tool_result", "tool_use_id": call, "content": result}
            item = {"role": "user", "content": [block]}
        self.messages.append(item)

    def _listed(self, server):
        tools = self._mcp_call(server, "tools/list", {})["tools"]
        return [
            {"name": f"mcp__{server}__{tool['name']}", "parameters": tool["inputSchema"]}
            for tool in tools
        ]

    def _call(self, call, tool, given):
        if tool == "Read":
            return self._file
        _, server, name = tool.split("__")
        meta = {"callId": call} if self.name == "codex" else {"claudecode/toolUseId": call}
        result = self._mcp_call(
            server, "tools/call", {"name": name, "arguments": given, "_meta": meta}
        )
        return "".join(part["text"] for part in result["content"])

    def _mcp_call(self, server, method, params):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"accept": "application/json, text/event-stream", **self._headers}
        _, answer, _ = _post(self._mcp[server], body, headers)
        return json.loads(answer)["result"]


def _post(url, body, headers):
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    try:
        connection.request("POST", parts.path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read().decode(), dict(response.getheaders())
    except OSError as error:
        return 0, str(error), {}
    finally:
        connection.close()


def main():
    name = Path(sys.argv[0]).name
    if sys.argv[1:] == ["debug", "models"]:
        return
    agent = Agent(name, sys.argv[1:], os.environ)
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(os.environ["AGENT_CONTROL"])
        stream = control.makefile("rw")
        hello = {"pid": os.getpid(), "arguments": sys.argv[1:], "environment": dict(os.environ)}
        print(json.dumps(hello), file=stream, flush=True)
        for line in stream:
            told = json.loads(line)
            if "exit" in told:
                sys.exit(told["exit"])
            if "spawn" in told:  # with whatever is open here, as programs in C do it
                child = subprocess.Popen(told["spawn"], close_fds=False)
                done = {"pid": child.pid}
            elif "history" in told:  # as it would read it from a file of its own
                agent.messages = told["history"] or agent.messages
                done = {"history": agent.messages}
            elif "call" in told:
                tool, given = told["call"]
                try:
                    done = {"result": agent._call("call-of-nobody", tool, given)}
                except ValueError:  # its server is gone
                    done = {"result": None}
            else:
                done = agent.ask(told.get("ask"), told.get("file", ""))
            print(json.dumps(done), file=stream, flush=True)


# The one who tells it what to do, in the process of the tests.


class Control:
    """An agent that has started."""

    def __init__(self, reader, writer, hello):
        self._reader, self._writer = reader, writer
        self.pid, self.arguments = hello["pid"], hello["arguments"]
        self.environment = hello["environment"]

    async def tell(self, **order):
        self._writer.write(json.dumps(order).encode() + b"\n")
        await self._writer.drain()
        line = await self._reader.readline()
        return json.loads(line) if line else None

    async def ask(self, text, file=""):
        return await self.tell(ask=text, file=file)

    async def history(self):
        """Its messages, which a process that continues the conversation starts with."""
        return (await self.tell(history=None))["history"]

    def close(self):
        self._writer.close()


class Stage:
    """Where agents are started: a folder with the programs, and a socket that they come to."""

    def __init__(self, folder, started):
        self.programs, self.control = folder / "bin", folder / "control"
        self._started = started

    async def agent(self):
        """The agent that comes next."""
        return await asyncio.wait_for(self._started.get(), 60)


@asynccontextmanager
async def stage(folder):
    """The stage for agents named as Claude Code, Codex and another one."""
    started = asyncio.Queue()
    (folder / "bin").mkdir()
    source = Path(__file__).read_text(encoding="utf-8")  # noqa: ASYNC240 - once
    for name in ("claude", "codex", "another"):
        program = folder / "bin" / name
        program.write_text(f"#!{sys.executable} -IS\n{source}")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    agents = []

    async def arrived(reader, writer):
        agents.append(Control(reader, writer, json.loads(await reader.readline())))
        started.put_nowait(agents[-1])

    server = await asyncio.start_unix_server(arrived, folder / "control", limit=1 << 24)
    try:
        yield Stage(folder, started)
    finally:
        for agent in agents:
            agent.close()
        server.close()


if __name__ == "__main__":
    main()
