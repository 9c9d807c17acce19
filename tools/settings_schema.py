"""The JSON Schema of refold.toml, made from the settings; tools/settings_reference.py writes it.

Editors read it: it is of draft 7, without references, which is what all of them understand.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel

from refold.models import ModelSettings
from refold.settings import ALIASES, DEFAULT_PROFILE, Serve
from refold.view.profiles import PROFILES, Profile

FILE: Final = Path(__file__).parent.parent / "src" / "refold" / "settings" / "refold.schema.json"
Schema = dict[str, Any]


def render() -> str:
    """The whole file."""
    return json.dumps(schema(), ensure_ascii=False, indent=1) + "\n"


def schema() -> Schema:
    """The schema of refold.toml: all that a file may set, and nothing else."""
    profile = _of(Profile, PROFILES[DEFAULT_PROFILE])
    settings: Schema = profile["properties"]
    settings["name"] = None
    hook = settings["hooks"]["properties"]["pre_compact"]
    settings["hooks"]["properties"]["pre_compact"] = _hooks(hook)
    for alias in ALIASES:
        if alias.file:
            table, name = _table(settings, alias.file)
            target, key = _table(settings, alias.keys[0])
            sets = " and ".join(f"`{key}`" for key in alias.keys)
            table[name] = {**target[key], "description": f"Another name for {sets}."}
            table[name].pop("default", None)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Settings of Refold",
        "description": "`refold config` shows the values that apply and where each comes from.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "profile": {
                "description": "The profile that supplies every value that is not set.",
                "enum": [*PROFILES],
                "default": DEFAULT_PROFILE,
            },
            **{name: value for name, value in settings.items() if value is not None},
            "serve": _of(Serve, Serve()),
            "models": {
                "description": "Facts about models, by name: "
                '`[models."openai:gpt-4o"]`, or `[models."gpt-4o"]` for every provider.',
                "type": "object",
                "additionalProperties": _of(ModelSettings, ModelSettings()),
            },
        },
    }


def _of(kind: type[BaseModel], usual: BaseModel) -> Schema:
    whole = kind.model_json_schema()
    plain: Schema = _inlined(whole, whole.get("$defs", {}))
    _set_defaults(plain, usual.model_dump(mode="json", exclude_none=True))
    plain.pop("required", None)
    return plain


def _inlined(value: object, definitions: Mapping[str, object]) -> Any:  # noqa: ANN401 - JSON
    """A schema without references, titles and nulls, which TOML doesn't have."""
    if isinstance(value, list):
        return [_inlined(each, definitions) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    node = cast("Schema", value)
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        target = cast("Schema", definitions[name])
        return _inlined({**target, **_without(node, "$ref")}, definitions)
    if "anyOf" in node:
        [kind] = [each for each in node["anyOf"] if each.get("type") != "null"]
        return _inlined({**kind, **_without(node, "anyOf")}, definitions)
    plain = {
        name: {key: _inlined(each, definitions) for key, each in inner.items()}
        if name == "properties"
        else _inlined(inner, definitions)
        for name, inner in node.items()
        if name not in ("$defs", "title", "default")
    }
    if "prefixItems" in plain:
        plain["items"] = plain.pop("prefixItems")
    return plain


def _without(node: Schema, name: str) -> Schema:
    return {key: value for key, value in node.items() if key != name}


def _set_defaults(node: Schema, usual: Mapping[str, object]) -> None:
    for name, value in usual.items():
        inner = node["properties"][name]
        if "properties" in inner:
            _set_defaults(inner, cast("Mapping[str, object]", value))
        else:
            inner["default"] = value


def _hooks(strict: Schema) -> Schema:
    """A hook in any of the forms that Claude Code and Copilot write."""
    forms: list[Schema] = [{"type": "string"}, {"type": "object"}]
    return {
        "description": strict["description"],
        "anyOf": [*forms, {"type": "array", "items": {"anyOf": forms}}],
    }


def _table(settings: Schema, dotted: str) -> tuple[Schema, str]:
    """The properties that hold a setting, and its name in them."""
    *path, name = dotted.split(".")
    for part in path:
        settings = settings[part]["properties"]
    return settings, name
