"""Which model a chat talks with, why that one, and how it is made."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from refold.cli.chat.models.local_servers import Server, public, running_here, server_at
from refold.errors import InvalidInput, NoModel
from refold.models import facts_of
from refold.settings import Settings

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider as ModelProvider


# The providers that a key in the environment chooses, and the model to begin with.


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


VARIABLE: Final = "REFOLD_MODEL"
"""Names the model where the command line does not."""
ASKED: Final = "you asked for it"
LOCAL: Final = "local"
_BASE_URLS: Final = {"OPENAI_BASE_URL": "OPENAI_API_KEY", "OLLAMA_BASE_URL": "OLLAMA_API_KEY"}
"""The variables that name a server, and what holds its key."""
_OPENAI: Final = "api.openai.com"
_TELLING: Final = 3
"""So many letters say something about a model's name."""
_CHAT: Final = 'Install what a chat needs: pip install "refold[chat]".'


@dataclass(frozen=True, slots=True)
class Choice:
    """A model to talk with. It holds no key."""

    name: str
    """With its provider: "anthropic:claude-sonnet-4-5"; "local:NAME" of a server."""
    why: str
    """One short sentence, for people."""
    base_url: str | None = None
    """The server's address, where it is not the provider's own."""
    window: int | None = None
    """What the server says of its window."""


def chosen_model(
    asked: str | None,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    base_url: str | None = None,
) -> Choice:
    """The model that applies: the one asked for, REFOLD_MODEL's, a key's, a local server's.

    Args:
        asked: `provider:model`, or `local` or `local:NAME` for a server.
        settings: What is known better of models.
        environ: Where keys and servers are named.
        base_url: The server's address.
    """
    named = asked or environ.get(VARIABLE) or (LOCAL if base_url else None)
    if named:
        why = ASKED if asked else f"{VARIABLE} names it"
        return _named(named, why, base_url, settings, environ)
    if provider := _with_key(environ):
        key = next(key for key in keys_found(environ) if key in provider.keys)
        return Choice(f"{provider.name}:{provider.default}", f"{key} is set")
    for variable, key in _BASE_URLS.items():
        if url := _foreign(environ.get(variable)):
            server = server_at(_with_version(variable, url), environ.get(key))
            return _of(server, server.models[0], f"{variable} is set", settings)
    for server in running_here():
        if server.models:
            why = f"{server.kind} answers at {public(server.url)}"
            return _of(server, server.models[0], why, settings)
    raise NoModel("There is no model to talk with: no key is set and no local server answers.")


def known_models(environ: Mapping[str, str]) -> list[str]:
    """Every model that has a name here, those of providers whose key is set first."""
    try:
        from pydantic_ai.models import known_model_names  # noqa: PLC0415 - slow, and an extra
    except ImportError:
        return []
    defaults = [f"{one.name}:{one.default}" for one in PROVIDERS]
    names = dict.fromkeys([*defaults, *known_model_names()])
    found = set(keys_found(environ))
    ranked = sorted(PROVIDERS, key=lambda one: not found & set(one.keys))
    order = {one.name: at for at, one in enumerate(ranked)}
    listed = [name for name in names if ":" in name and not name.startswith("gateway/")]
    return sorted(listed, key=lambda name: order.get(name.partition(":")[0], len(order)))


def model_of(choice: Choice, environ: Mapping[str, str]) -> "Model":
    """The model itself, or an error that says what is missing."""
    try:
        from pydantic_ai.exceptions import UserError  # noqa: PLC0415 - slow, and comes with an extra
        from pydantic_ai.models import infer_model  # noqa: PLC0415 - see above
    except ImportError as error:
        raise NoModel("Pydantic AI is not installed.", _CHAT) from error
    provider, _, name = choice.name.partition(":")
    if not (provider and name) and choice.name != "test":
        raise _unknown(choice.name, environ)
    try:
        if choice.base_url is not None:
            return _served(provider, name, choice, environ)
        return infer_model(choice.name, lambda one: _provider(one, choice.name, environ))
    except ImportError as error:
        raise _not_installed(provider, str(error)) from error
    except UserError as error:
        raise _refused(choice.name, str(error), environ) from None  # its text may quote a value


def _named(
    name: str, why: str, base_url: str | None, settings: Settings, environ: Mapping[str, str]
) -> Choice:
    if name.startswith(("http://", "https://")):
        raise InvalidInput(
            "An address names a server, not a model.", f"Write: -m local --base-url {public(name)}"
        )
    provider, _, model = name.partition(":")
    if provider == LOCAL:
        return _local(model, why, base_url, settings, environ)
    if base_url is not None and provider != "openai":
        raise InvalidInput(
            f"--base-url goes with a local server, and {name} is none.",
            f"Write -m local --base-url {public(base_url)}, or leave --base-url out.",
        )
    if provider != "openai":
        return Choice(name, why)
    return Choice(name, why, base_url or _foreign(environ.get("OPENAI_BASE_URL")))


def _local(
    model: str, why: str, base_url: str | None, settings: Settings, environ: Mapping[str, str]
) -> Choice:
    """A model of the server that was named, or of one that answers here."""
    servers = (
        [server_at(base_url, _key_for(base_url, environ))] if base_url else _configured(environ)
    )
    for server in servers:
        if found := _listed(model, server.models):
            return _of(server, found, why, settings)
    if not servers:
        raise NoModel(
            "No local server answers.",
            "Start one (Ollama, LM Studio, llama.cpp, vLLM), or say where it is: "
            "--base-url http://127.0.0.1:8080/v1",
        )
    there = [name for server in servers for name in server.models]
    raise NoModel(
        f"No server here has a model {model!r}.", f"There are: {', '.join(there[:8]) or 'none'}."
    )


def _configured(environ: Mapping[str, str]) -> list[Server]:
    named = [
        (one, url, environ.get(key)) for one, key in _BASE_URLS.items() if (url := environ.get(one))
    ]
    return [server_at(_with_version(one, url), key) for one, url, key in named] or running_here()


def _listed(model: str, models: Sequence[str]) -> str | None:
    """The server's own name of a model; its first when none is named."""
    if not model:
        return next(iter(models), None)
    return next((one for one in models if one in (model, f"{model}:latest")), None)


def _of(server: Server, model: str, why: str, settings: Settings) -> Choice:
    name = f"{LOCAL}:{model}"
    window = facts_of(name, settings.models).window if _is_set(name, settings) else None
    return Choice(name, why, server.url, window or server.windows.get(model))


def _is_set(name: str, settings: Settings) -> bool:
    return bool({name, name.partition(":")[2]} & settings.models.keys())


def _with_key(environ: Mapping[str, str]) -> Provider | None:
    """The first provider with a key; one that is not installed only if there is no other.

    The key of OpenAI is that of another server, where one is named.
    """
    elsewhere = _foreign(environ.get("OPENAI_BASE_URL")) is not None
    having = [
        one
        for one in PROVIDERS
        if set(keys_found(environ)) & set(one.keys) and not (one.name == "openai" and elsewhere)
    ]
    return next((one for one in having if one.installed), next(iter(having), None))


def is_foreign(url: str | None) -> bool:
    """Whether an address is not OpenAI's own."""
    return _foreign(url) is not None


def _foreign(url: str | None) -> str | None:
    return url if url and _OPENAI not in url else None


def _with_version(variable: str, url: str) -> str:
    """Ollama's variable is often written without the end of the path."""
    bare = url.rstrip("/")
    return f"{bare}/v1" if variable == "OLLAMA_BASE_URL" and not bare.endswith("/v1") else bare


def _key_for(url: str | None, environ: Mapping[str, str]) -> str | None:
    """The key that belongs to an address: no other server is shown it."""
    for variable, key in _BASE_URLS.items():
        own = environ.get(variable)
        if url and own and _with_version(variable, own) == url.rstrip("/"):
            return environ.get(key) or None
    return None


def _served(provider: str, name: str, choice: Choice, environ: Mapping[str, str]) -> "Model":
    """A model behind an address that speaks OpenAI's older language, as all servers do."""
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - slow, and an extra
    from pydantic_ai.providers.openai_compatible import (  # noqa: PLC0415 - see above
        OpenAICompatibleProvider,
    )

    url = choice.base_url or ""
    made = OpenAICompatibleProvider(provider, base_url=url, api_key=_key_for(url, environ))
    if choice.window is None:
        return OpenAIChatModel(name, provider=made)
    return OpenAIChatModel(name, provider=made, profile={"context_window": choice.window})


def _provider(name: str, model: str, environ: Mapping[str, str]) -> "ModelProvider[Any]":
    from pydantic_ai.providers import (  # noqa: PLC0415 - slow, and comes with an extra
        infer_provider,
        infer_provider_class,
    )

    known = next((one for one in PROVIDERS if one.name == name), None)
    try:
        kind: Any = infer_provider_class(name)
    except ValueError as error:
        raise _unknown(model, environ) from error
    if known is None:
        return infer_provider(name)
    key = next((environ[key] for key in known.keys if environ.get(key, "").strip()), None)
    if key is None:
        raise _no_key(model, known.keys)
    return kind(api_key=key)


def _no_key(model: str, variables: Sequence[str]) -> NoModel:
    first = variables[0]
    return NoModel(f"{model} needs a key, and {first} is not set.", f"Set it: export {first}=…")


def _not_installed(provider: str, said: str) -> NoModel:
    group = re.search(r"pydantic-ai-slim\[([\w-]+)\]", said)
    package = f"pydantic-ai-slim[{group[1] if group else provider}]"
    return NoModel(
        f"What is needed to talk with {provider} is not installed.", f'Run: pip install "{package}"'
    )


def _refused(model: str, said: str, environ: Mapping[str, str]) -> NoModel:
    variables = re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`", said)
    return _no_key(model, variables) if variables else _unknown(model, environ)


def _unknown(model: str, environ: Mapping[str, str]) -> NoModel:
    known = known_models(environ)
    wanted = model.lower()
    bare = {name.partition(":")[2]: name for name in reversed(known)}
    near = [bare[wanted]] if wanted in bare else []
    near += get_close_matches(wanted, known, n=3, cutoff=0.6)
    near += [bare[one] for one in get_close_matches(wanted, bare, n=2, cutoff=0.7)]
    near += [name for name in known if len(wanted) >= _TELLING and wanted in name]
    names = ", ".join(list(dict.fromkeys(near))[:3])
    return NoModel(
        f"No provider has a model that is named {model!r}.",
        f"Did you mean {names}?" if names else "Write it as provider:model, like openai:gpt-5.5.",
    )
