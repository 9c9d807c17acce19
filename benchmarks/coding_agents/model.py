"""A scripted model that works as a coding agent's does: it reads, edits, writes and runs.

Its answers have what agents rewrite: commands that change the folder first, lines with trailing
spaces, edits without the arguments that have defaults, and texts of blank lines.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from refold.testing.upstream import Call, Got, Reply

TASK: Final = "Tidy up the parcel project"
"""Is in the prompts of the conversation, and in no other request of an agent."""
SUBTASK: Final = "Count the words of the parcel notes and report the longest one"
_SUMMARY: Final = re.compile(r"(?i)(detailed|handoff|structured|comprehensive|new) .{0,80}summar")
SHELLS: Final = (*("Bash", "bash", "shell", "shell_command", "exec_command", "run_shell_command"),)
_READS: Final = ("Read", "read", "view", "read_file")
_EDITS: Final = ("Edit", "edit", "str_replace")
_WRITES: Final = ("Write", "write", "create", "write_file")
_DELEGATES: Final = ("Agent", "Task", "task")
_PATHS: Final = ("file_path", "filePath", "path")
_OLD: Final = ("old_string", "oldString", "old_str", "oldText")
_NEW: Final = ("new_string", "newString", "new_str", "newText")
_CONTENTS: Final = ("content", "file_text")
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


@dataclass
class CodingModel:
    """Answers the requests of one agent's run."""

    folder: str
    turns: tuple[int, ...]
    """How many calls each turn of the conversation has."""
    delegates: bool = False
    """Whether one call has another agent do something, where there is a tool for it."""
    calls: int = 0
    """Calls that were answered with, in the conversation."""
    _turn: int = 0
    _in_turn: int = 0
    _sub: int = 0
    _ids: Iterator[int] = field(default_factory=lambda: count(1))

    def __call__(self, got: Got) -> Reply:
        """The next answer."""
        usage = (len(got.raw) // 4, 40)
        words = words_of(got.body)
        if is_summary(words):
            return Reply(self._summary(), usage=usage)
        tools = tools_of(got.body)
        shell = next((name for name in SHELLS if name in tools), None)
        if shell is None or not (is_main(got.body) or SUBTASK in words):
            return Reply("Parcel notes", usage=usage)
        if not is_main(got.body):
            return self._sub_answer(tools, usage)
        return self._main_answer(tools, usage)

    def _main_answer(self, tools: dict[str, Any], usage: tuple[int, int]) -> Reply:
        if self._turn >= len(self.turns) or self._in_turn >= self.turns[self._turn]:
            self._turn, self._in_turn = self._turn + 1, 0
            return Reply(f"Part {self._turn} of the work is done.", usage=usage)
        self._in_turn += 1
        self.calls += 1
        nth = self.calls
        call = self._call(tools, nth)
        text = "\n\n" if nth % 3 == 0 else f"I look at note {nth} now." if nth % 3 == 1 else ""
        return Reply(text, (call,), usage, f"Step {nth}: what does the note say?")

    def _sub_answer(self, tools: dict[str, Any], usage: tuple[int, int]) -> Reply:
        self._sub += 1
        if self._sub > 2:
            return Reply("The longest one is note 3, with 900 words.", usage=usage)
        return Reply("", (self._shell(tools, f"wc -w notes/{self._sub:02d}.md"),), usage)

    def _summary(self) -> str:
        return (
            "<analysis>\nThe user wants the parcel project tidied up, and I read its notes.\n"
            "</analysis>\n<summary>\n1. The request: tidy up the parcel project, note by note.\n"
            f"2. Done so far: {self.calls} calls, with edits of the notes that were read.\n"
            "3. Next: go on with the notes that are left, and then report to the user.\n</summary>"
        )

    def _call(self, tools: dict[str, Any], nth: int) -> Call:
        if self.delegates and nth == 8:
            for name in _DELEGATES:
                if name in tools:
                    return self._made(tools, name, _delegation(tools[name]))
        kinds: list[Callable[[dict[str, Any], int], Call]] = [
            self._read,
            self._edit,
            self._command,
            self._write,
        ]
        return kinds[nth % len(kinds)](tools, nth)

    def _read(self, tools: dict[str, Any], nth: int) -> Call:
        for name in _READS:
            if name in tools:
                return self._made(tools, name, {_PATHS: self._note(nth)})
        return self._shell(tools, f"cat notes/{nth:02d}.md")

    def _edit(self, tools: dict[str, Any], nth: int) -> Call:
        note = self._note(nth - 1)
        for name in _EDITS:
            if name in tools:
                old, new = f"Note {nth - 1}.", f"Note {nth - 1}, tidied up."
                if "edits" in tools[name].get("properties", {}):
                    return self._made(
                        tools, name, {_PATHS: note, ("edits",): [{"oldText": old, "newText": new}]}
                    )
                return self._made(tools, name, {_PATHS: note, _OLD: old, _NEW: new})
        return self._shell(tools, f"cd {self.folder} && sed -i s/Note/Notes/ notes/{nth:02d}.md")

    def _command(self, tools: dict[str, Any], nth: int) -> Call:
        return self._shell(tools, f"cd {self.folder} && cat notes/{nth:02d}.md   ")

    def _write(self, tools: dict[str, Any], nth: int) -> Call:
        for name in _WRITES:
            if name in tools:
                content = f"# Report {nth}   \n\nAll is well.  \n"
                path = f"{self.folder}/report-{nth}.md"
                return self._made(tools, name, {_PATHS: path, _CONTENTS: content})
        return self._shell(tools, f"cat notes/{nth:02d}.md | head -c 6000")

    def _note(self, nth: int) -> str:
        return f"{self.folder}/notes/{nth:02d}.md"

    def _shell(self, tools: dict[str, Any], command: str) -> Call:
        name = next(one for one in SHELLS if one in tools)
        kind = tools[name].get("properties", {}).get("command", {}).get("type")
        given: object = ["bash", "-lc", command] if kind == "array" else command
        return self._made(tools, name, {("command", "cmd"): given})

    def _made(self, tools: dict[str, Any], name: str, given: dict[tuple[str, ...], Any]) -> Call:
        """A call with the tool's own names for its arguments, and what else it requires."""
        schema = tools[name]
        fields = schema.get("properties", {})
        arguments = {
            next((key for key in keys if key in fields), keys[0]): value
            for keys, value in given.items()
        }
        for key in schema.get("required", ()):
            arguments.setdefault(key, _filler(fields.get(key, {})))
        return Call(self._id(), name, arguments)

    def _id(self) -> str:
        """An id as providers make them, the same in every run."""
        number, letters = next(self._ids) * 2_654_435_761 % 2**64 + 62**10, ""
        while number:
            number, rest = divmod(number, len(_LETTERS))
            letters += _LETTERS[rest]
        return f"call_{letters}"


def is_main(body: dict[str, Any]) -> bool:
    """Whether a request is of the conversation itself."""
    tools = tools_of(body)
    words = words_of(body)
    return any(name in tools for name in SHELLS) and TASK in words and not is_summary(words)


def is_summary(words: str) -> bool:
    """Whether a request asks for a summary of its conversation."""
    return bool(_SUMMARY.search(words[-8_000:].rsplit("\n\0", 1)[-1]))


def words_of(body: dict[str, Any]) -> str:
    """All that users said in a request, each text after a line with a zero character."""
    messages = body.get("messages") or body.get("input") or []
    said: list[str] = []
    for message in messages if isinstance(messages, list) else []:
        if message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                said.append(content)
            else:
                said += [one.get("text", "") for one in content or () if isinstance(one, dict)]
    return "".join(f"\n\0{one}" for one in said)


def tools_of(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for tool in body.get("tools") or ():
        function = tool.get("function") or tool
        if isinstance(function.get("name"), str):
            schema = function.get("parameters") or function.get("input_schema") or {}
            found[function["name"]] = schema
    return found


def _listed(kinds: object) -> list[object]:
    return kinds if isinstance(kinds, list) else [kinds]


def _filler(schema: dict[str, Any]) -> object:
    kinds = schema.get("type")
    choices = schema.get("anyOf") or [{**schema, "type": kind} for kind in _listed(kinds)]
    if any(choice.get("type") == "null" for choice in choices):
        return None
    if "enum" in schema:
        return schema["enum"][0]
    plain = {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}
    return plain.get(str(schema.get("type")), "the parcel notes")


def _delegation(schema: dict[str, Any]) -> dict[tuple[str, ...], Any]:
    given: dict[tuple[str, ...], Any] = {("prompt",): SUBTASK, ("description",): "Count words"}
    if "subagent_type" in schema.get("properties", {}):
        given["subagent_type",] = "general-purpose"
    elif "agent_type" in schema.get("properties", {}):
        given["agent_type",] = "general-purpose"
    return given


def write_project(folder: Any, notes: int = 80) -> None:  # noqa: ANN401 - a path
    """The files that the agent works on: notes of some kilobytes each."""
    (folder / "notes").mkdir(parents=True)
    for nth in range(notes):
        lines = [f"Note {nth}.", *(f"Parcel {nth}-{row}: {_line(nth, row)}" for row in range(120))]
        (folder / "notes" / f"{nth:02d}.md").write_text("\n".join(lines) + "\n")


def _line(nth: int, row: int) -> str:
    places = ("harbor", "depot", "station", "workshop", "archive", "warehouse", "garden")
    return json.dumps(
        {"from": places[(nth + row) % 7], "to": places[(nth * row) % 7], "weight": nth * row % 97}
    )
