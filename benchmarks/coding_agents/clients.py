"""The coding agents: how each is told where its model is, and how a turn of it is run."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MODELS: Final = {
    "messages": "claude-sonnet-4-5",
    "responses": "gpt-5-mini",
    "chat": "gpt-5-mini",
}
_KEY: Final = "sk-nobody"


@dataclass(frozen=True)
class Client:
    """One agent."""

    name: str
    package: str
    """Its name on npm."""
    command: str
    api: str
    window: int
    """The model's window as the gateway is told: small, so that it folds some times in a run."""
    configure: Callable[[Path, str, str], dict[str, str]]
    """Writes the agent's settings into its home, for a model at an address; its environment."""
    arguments: Callable[[str, int], list[str]]
    """Of a turn: the prompt, and which turn it is. A later one resumes the conversation."""
    compact: Callable[[], list[str]] | None = None
    """How the agent is told to compact its own history, if that can be done without a terminal."""

    @property
    def model(self) -> str:
        return MODELS[self.api]


def _claude(_home: Path, address: str, _model: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": _KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8000",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
        "MAX_THINKING_TOKENS": "4000",
    }


def _claude_turn(prompt: str, turn: int) -> list[str]:
    resumed = ["--continue"] if turn else []
    return ["-p", prompt, "--model", MODELS["messages"], "--dangerously-skip-permissions", *resumed]


def _codex(home: Path, address: str, model: str) -> dict[str, str]:
    folder = home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(
        f'model = "{model}"\nmodel_provider = "refold"\n'
        'approval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
        'model_reasoning_effort = "low"\ncheck_for_update_on_startup = false\n'
        '[model_providers.refold]\nname = "Refold"\n'
        f'base_url = "{address}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
        "request_max_retries = 1\nstream_max_retries = 1\nsupports_websockets = false\n"
        "[analytics]\nenabled = false\n"
    )
    return {"OPENAI_API_KEY": _KEY}


def _codex_turn(prompt: str, turn: int) -> list[str]:
    resumed = ["resume", "--last"] if turn else []
    return ["exec", "--skip-git-repo-check", *resumed, prompt]


def _opencode(home: Path, address: str, model: str) -> dict[str, str]:
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    options = {"baseURL": f"{address}/v1", "apiKey": _KEY}
    provider = {"openai": {"options": options, "models": {model: {}}}}
    given = {"provider": provider, "autoupdate": False, "share": "disabled"}
    (folder / "opencode.json").write_text(
        json.dumps({**given, "permission": "allow", "compaction": {"auto": False}})
    )
    return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}


def _opencode_turn(prompt: str, turn: int) -> list[str]:
    resumed = ["--continue"] if turn else []
    return ["run", "-m", f"openai/{MODELS['responses']}", *resumed, prompt]


def _pi(home: Path, address: str, model: str) -> dict[str, str]:
    folder = home / ".pi" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    entry = {"id": model, "reasoning": True, "contextWindow": 400_000, "maxTokens": 8_000}
    provider = {"baseUrl": f"{address}/v1", "api": "openai-responses", "apiKey": _KEY}
    models = {"providers": {"refold": {**provider, "models": [entry]}}}
    (folder / "models.json").write_text(json.dumps(models))
    return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}


def _pi_turn(prompt: str, turn: int) -> list[str]:
    resumed = ["--continue"] if turn else []
    model = f"refold/{MODELS['responses']}"
    return ["-p", "--model", model, "--thinking", "low", *resumed, prompt]


def _copilot(_home: Path, address: str, model: str) -> dict[str, str]:
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{address}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_WIRE_API": "responses",
        "COPILOT_PROVIDER_API_KEY": _KEY,
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "400000",
        "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "8000",
        "COPILOT_MODEL": model,
        "COPILOT_AUTO_UPDATE": "false",
    }


def _copilot_turn(prompt: str, turn: int) -> list[str]:
    resumed = ["--continue"] if turn else []
    return ["-p", prompt, "--allow-all-tools", "--allow-all-paths", *resumed]


def _qwen(_home: Path, address: str, _model: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": _KEY}


def _qwen_turn(prompt: str, turn: int) -> list[str]:
    resumed = ["--continue"] if turn else []
    model = ["--auth-type", "openai", "-m", MODELS["chat"]]
    return [*model, "--approval-mode", "yolo", *resumed, "-p", prompt]


_CLAUDE: Final = Client(
    "claude-code",
    "@anthropic-ai/claude-code",
    "claude",
    "messages",
    60_000,
    _claude,
    _claude_turn,
    lambda: ["-p", "/compact", "--continue", "--model", MODELS["messages"]],
)
_CODEX: Final = Client("codex", "@openai/codex", "codex", "responses", 40_000, _codex, _codex_turn)
_OPENCODE: Final = Client(
    "opencode", "opencode-ai", "opencode", "responses", 40_000, _opencode, _opencode_turn
)
_PI: Final = Client(
    "pi", "@earendil-works/pi-coding-agent", "pi", "responses", 30_000, _pi, _pi_turn
)
_COPILOT: Final = Client(
    "copilot", "@github/copilot", "copilot", "responses", 46_000, _copilot, _copilot_turn
)
_QWEN: Final = Client("qwen", "@qwen-code/qwen-code", "qwen", "chat", 46_000, _qwen, _qwen_turn)
CLIENTS: Final = {one.name: one for one in (_CLAUDE, _CODEX, _OPENCODE, _PI, _COPILOT, _QWEN)}
