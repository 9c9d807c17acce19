"""Tool results as Markdown, for those who read them as text."""

import json

from pydantic import JsonValue


def render_tool_result(tool: str, input: JsonValue, output: JsonValue) -> str:  # noqa: A002 - as people call it
    """A tool's call and result as Markdown, with both as JSON indented by two."""
    return f"## Tool: {tool}\n\n**Input:**\n{_indented(input)}\n\n**Output:**\n{_indented(output)}"


def _indented(value: JsonValue) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
