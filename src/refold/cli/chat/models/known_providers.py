"""The providers that a key in the environment chooses, and the model to begin with."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final, NamedTuple


class Provider(NamedTuple):
    """A provider that a key in the environment chooses."""

    name: str
    keys: tuple[str, ...]
    default: str
    """The model to begin with."""
    package: str = "openai"
    """What must be importable to talk with it."""

    @property
    def installed(self) -> bool:
        """Whether it is."""
        try:
            return find_spec(self.package) is not None
        except ImportError:  # the package above is missing
            return False


PROVIDERS: Final = (
    Provider("anthropic", ("ANTHROPIC_API_KEY",), "claude-sonnet-5-5", "anthropic"),
    Provider("openai", ("OPENAI_API_KEY",), "gpt-6.1-sol"),
    Provider("google", ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "gemini-3.8-flash", "google.genai"),
    Provider("mistral", ("MISTRAL_API_KEY",), "mistral-large-latest", "mistralai"),
    Provider("groq", ("GROQ_API_KEY",), "openai/gpt-oss-120b", "groq"),
    Provider("cohere", ("CO_API_KEY",), "command-r-plus-08-2024", "cohere"),
    Provider("deepseek", ("DEEPSEEK_API_KEY",), "deepseek-v4-pro"),
    Provider("openrouter", ("OPENROUTER_API_KEY",), "anthropic/claude-sonnet-5"),
    Provider("xai", ("XAI_API_KEY",), "grok-4.7", "xai_sdk"),
    Provider("moonshotai", ("MOONSHOTAI_API_KEY",), "kimi-k2.5"),
    Provider("zai", ("ZAI_API_KEY",), "glm-5.2"),
    Provider("cerebras", ("CEREBRAS_API_KEY",), "gpt-oss-120b"),
    Provider("together", ("TOGETHER_API_KEY",), "openai/gpt-oss-120b"),
)
"""The first whose key is set is talked with."""


def keys_found(environ: Mapping[str, str]) -> list[str]:
    """The names of the variables that hold a key."""
    return [key for one in PROVIDERS for key in one.keys if environ.get(key, "").strip()]
