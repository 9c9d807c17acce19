"""Which model a chat uses, and why that one."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from refold.cli.chat.models.local_servers import Server, public, running_here, server_at
from refold.cli.outcome import wrong_usage
from refold.errors import InvalidInput, NoModel, RefoldError
from refold.models import facts_of
from refold.settings import Settings

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider as ModelProvider


VARIABLE: Final = "REFOLD_MODEL"  # names the model unless the command line does
ASKED: Final = "you asked for it"
LOCAL: Final = "local"
_BASE_URLS: Final = {"OPENAI_BASE_URL": "OPENAI_API_KEY", "OLLAMA_BASE_URL": "OLLAMA_API_KEY"}
"""The variables that name a server, and those of its key."""
_OPENAI: Final = "api.openai.com"
_DATE: Final = re.compile(r"-(?:\d{4}-\d\d-\d\d|\d{8}|\d\d-\d{4}|\d{4})(?=$|[-:])")
"""What a dated snapshot has in its name, and its alias has not."""
_MIN_LETTERS: Final = 3  # of a part of a model's name that is worth matching
_CHAT: Final = 'Install what a chat needs: pip install "refold[chat]".'


class Provider(NamedTuple):
    name: str
    keys: tuple[str, ...]
    default: str  # the model to begin with
    package: str = "openai"  # must be importable

    @property
    def installed(self) -> bool:
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
"""The first whose key is set is used."""


def keys_found(environ: Mapping[str, str]) -> list[str]:
    return [key for provider in PROVIDERS for key in provider.keys if environ.get(key, "").strip()]


@dataclass(frozen=True, slots=True)
class Choice:
    """A model for a chat. It holds no key."""

    name: str  # with its provider: "anthropic:claude-sonnet-4-5"; "local:NAME" of a server
    why: str  # one short sentence, for people
    base_url: str | None = None  # the server's address, where it is not the provider's own
    window: int | None = None  # what the server says of its window


def chosen_model(
    asked: str | None,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    base_url: str | None = None,
) -> Choice:
    """The requested model, or REFOLD_MODEL's, or one with a key, or a local server's.

    Args:
        asked: `provider:model`, or `local` or `local:NAME` for a server. A name without its
            provider is looked for on servers alone.
        settings: With the user's own facts about models.
        environ: With the keys and the addresses of servers.
        base_url: The server's address.
    """
    named = asked or environ.get(VARIABLE) or (LOCAL if base_url else None)
    if named:
        source = VARIABLE if environ.get(VARIABLE) else "--base-url"
        why = ASKED if asked else f"{source} names it"
        with wrong_usage():
            return _named_choice(named, why, base_url, settings, environ)
    if provider := _provider_with_key(environ):
        key = next(key for key in keys_found(environ) if key in provider.keys)
        return Choice(f"{provider.name}:{provider.default}", f"{key} is set")
    for variable, key in _BASE_URLS.items():
        url = environ.get(variable)
        if url and is_foreign(url):
            server = server_at(_with_version(variable, url), environ.get(key))
            return _server_choice(server, server.models[0], f"{variable} is set", settings)
    for server in running_here():
        if server.models:
            why = f"{server.kind} answers at {public(server.url)}"
            return _server_choice(server, server.models[0], why, settings)
    raise NoModel("There is no model to talk with: no key is set and no local server answers.")


def known_models(environ: Mapping[str, str]) -> list[str]:
    """The names of all models, those of providers whose key is set first."""
    try:
        from pydantic_ai.models import known_model_names  # noqa: PLC0415 - slow, and an extra
    except ImportError:
        return []
    defaults = [f"{provider.name}:{provider.default}" for provider in PROVIDERS]
    names = dict.fromkeys([*defaults, *known_model_names()])
    keys = set(keys_found(environ))
    ranked = sorted(PROVIDERS, key=lambda provider: not keys & set(provider.keys))
    order = {provider.name: index for index, provider in enumerate(ranked)}
    listed = [name for name in names if ":" in name and not name.startswith("gateway/")]
    return sorted(listed, key=lambda name: order.get(name.partition(":")[0], len(order)))


def listed_models(names: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The models to choose from: those with a key first; no dated snapshots beside their alias."""
    known = {*names}
    aliases = {name: _DATE.sub("", name) for name in names}
    listed = [name for name in names if aliases[name] == name or aliases[name] not in known]
    return sorted(listed, key=lambda name: _rank(name, environ))


def missing_key(model: str, environ: Mapping[str, str]) -> str:
    """The variable that the model's key belongs in; empty if it is set, or if none is known."""
    provider = _provider_of(model)
    if provider is None or _has_key(provider, environ):
        return ""
    return provider.keys[0]


def local_models(environ: Mapping[str, str], base_url: str | None) -> dict[str, int | None]:
    """The models of local servers, with the windows that these report."""
    try:
        servers = _servers(base_url, environ)
    except RefoldError:  # it does not answer now
        return {}
    return {
        f"{LOCAL}:{name}": server.windows.get(name) for server in servers for name in server.models
    }


def _rank(model: str, environ: Mapping[str, str]) -> int:
    provider = _provider_of(model)
    if provider is None:
        return 2  # its credentials are not looked for
    return 0 if _has_key(provider, environ) else 1


def _provider_of(model: str) -> Provider | None:
    name = model.partition(":")[0]
    return next((one for one in PROVIDERS if one.name == name), None)


def _has_key(provider: Provider, environ: Mapping[str, str]) -> bool:
    return any(environ.get(key, "").strip() for key in provider.keys)


def model_of(choice: Choice, environ: Mapping[str, str]) -> "Model":
    """The model itself. Raises an error that says what is missing."""
    try:
        from pydantic_ai.exceptions import UserError  # noqa: PLC0415 - slow, and an extra
        from pydantic_ai.models import infer_model  # noqa: PLC0415 - see above
    except ImportError as error:
        raise NoModel("Pydantic AI is not installed.", _CHAT) from error
    provider, _, name = choice.name.partition(":")
    if not (provider and name) and choice.name != "test":
        raise _unknown(choice.name, environ)
    try:
        if choice.base_url is not None:
            return _served_model(provider, name, choice, environ)
        return infer_model(choice.name, lambda key: _provider(key, choice.name, environ))
    except ImportError as error:
        group = re.search(r"pydantic-ai-slim\[([\w-]+)\]", str(error))
        package = f"pydantic-ai-slim[{group[1] if group else provider}]"
        raise NoModel(
            f"What is needed to talk with {provider} is not installed.",
            f'Run: pip install "{package}"',
        ) from error
    except UserError as error:  # its text may quote a value, so it is no cause
        variables = re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`", str(error))
        if variables:
            raise _no_key(choice.name, variables) from None
        raise _unknown(choice.name, environ) from None


def _named_choice(
    name: str, why: str, base_url: str | None, settings: Settings, environ: Mapping[str, str]
) -> Choice:
    if name.startswith(("http://", "https://")):
        raise InvalidInput(
            "An address names a server, not a model.", f"Write: -m local --base-url {public(name)}"
        )
    provider, _, model = name.partition(":")
    if provider == LOCAL:
        return _local_choice(model, why, base_url, settings, environ)
    if name != "test" and not names_provider(name):
        return _bare_choice(name, why, base_url, settings, environ)
    if provider == "openai":
        own = environ.get("OPENAI_BASE_URL")
        return Choice(name, why, base_url or (own if is_foreign(own) else None))
    if base_url is not None:
        raise InvalidInput(
            f"--base-url goes with a local server, and {name} is none.",
            f"Write -m local --base-url {public(base_url)}, or leave --base-url out.",
        )
    return Choice(name, why)


def names_provider(name: str) -> bool:
    """Whether a model is named with its provider; a local one may have a colon too: `qwen3:8b`."""
    provider, colon, _ = name.partition(":")
    if not colon:
        return False
    if provider in {LOCAL, *(one.name for one in PROVIDERS)} or provider.startswith("gateway/"):
        return True
    try:
        from pydantic_ai.providers import infer_provider_class  # noqa: PLC0415 - slow, an extra's

        infer_provider_class(provider)
    except ValueError:  # it knows no such provider
        return False
    except ImportError:  # it needs a package
        pass
    return True


def _bare_choice(
    name: str, why: str, base_url: str | None, settings: Settings, environ: Mapping[str, str]
) -> Choice:
    """A model of a server, named without `local:`."""
    try:
        return _local_choice(name, why, base_url, settings, environ)
    except RefoldError:
        served = local_models(environ, base_url)
        if f"{LOCAL}:{name}" in settings.models or (base_url and not served):
            raise
    raise _unknown(name, environ, served)


def _local_choice(
    model: str, why: str, base_url: str | None, settings: Settings, environ: Mapping[str, str]
) -> Choice:
    """A model of the named server, or of one that answers here."""
    servers = _servers(base_url, environ)
    for server in servers:
        # Without a name, the server's first.
        names = [one for one in server.models if not model or one in (model, f"{model}:latest")]
        if names:
            return _server_choice(server, names[0], why, settings)
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


def _servers(base_url: str | None, environ: Mapping[str, str]) -> list[Server]:
    """The named server, or those that variables name, or those that answer on this machine."""
    if base_url:
        return [server_at(base_url, _key_for(base_url, environ))]
    return [
        server_at(_with_version(variable, url), environ.get(key))
        for variable, key in _BASE_URLS.items()
        if (url := environ.get(variable))
    ] or running_here()


def _server_choice(server: Server, model: str, why: str, settings: Settings) -> Choice:
    name = f"{LOCAL}:{model}"
    is_set = bool({name, model} & settings.models.keys())
    window = facts_of(name, settings.models).window if is_set else None
    return Choice(name, why, server.url, window or server.windows.get(model))


def _provider_with_key(environ: Mapping[str, str]) -> Provider | None:
    """The first provider with a key; one that is not installed only if there is no other.

    OPENAI_API_KEY belongs to another server if OPENAI_BASE_URL names one.
    """
    keys = set(keys_found(environ))
    if is_foreign(environ.get("OPENAI_BASE_URL")):
        keys.discard("OPENAI_API_KEY")
    providers = [provider for provider in PROVIDERS if keys & set(provider.keys)]
    installed = (provider for provider in providers if provider.installed)
    return next(installed, next(iter(providers), None))


def is_foreign(url: str | None) -> bool:
    """Whether an address is not OpenAI's own."""
    return bool(url) and _OPENAI not in url


def _with_version(variable: str, url: str) -> str:
    """Ollama's variable is often written without the end of the path."""
    bare = url.rstrip("/")
    return f"{bare}/v1" if variable == "OLLAMA_BASE_URL" and not bare.endswith("/v1") else bare


def _key_for(url: str, environ: Mapping[str, str]) -> str | None:
    """The key that belongs to an address: it is sent to no other server."""
    for variable, key in _BASE_URLS.items():
        own = environ.get(variable)
        if url and own and _with_version(variable, own) == url.rstrip("/"):
            return environ.get(key) or None
    return None


def _served_model(provider: str, name: str, choice: Choice, environ: Mapping[str, str]) -> "Model":
    """A model behind an address, by the Chat Completions API, which all servers have."""
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - slow, and an extra
    from pydantic_ai.providers.openai_compatible import (  # noqa: PLC0415 - see above
        OpenAICompatibleProvider,
    )

    url = choice.base_url or ""
    server = OpenAICompatibleProvider(provider, base_url=url, api_key=_key_for(url, environ))
    if choice.window is None:
        return OpenAIChatModel(name, provider=server)
    return OpenAIChatModel(name, provider=server, profile={"context_window": choice.window})


def _provider(name: str, model: str, environ: Mapping[str, str]) -> "ModelProvider[Any]":
    from pydantic_ai.providers import (  # noqa: PLC0415 - slow, and comes with an extra
        infer_provider,
        infer_provider_class,
    )

    provider = next((one for one in PROVIDERS if one.name == name), None)
    try:
        kind: Any = infer_provider_class(name)
    except ValueError as error:
        raise _unknown(model, environ) from error
    if provider is None:
        return infer_provider(name)
    key = next((environ[key] for key in provider.keys if environ.get(key, "").strip()), None)
    if key is None:
        raise _no_key(model, provider.keys)
    return kind(api_key=key)


def _no_key(model: str, variables: Sequence[str]) -> NoModel:
    first = variables[0]
    return NoModel(f"{model} needs a key, and {first} is not set.", f"Set it: export {first}=…")


def _unknown(model: str, environ: Mapping[str, str], served: Iterable[str] = ()) -> NoModel:
    known = [*served, *known_models(environ)]
    name = model.lower()
    bare = {one.partition(":")[2]: one for one in reversed(known)}
    near = [bare[name]] if name in bare else []
    near += get_close_matches(name, known, n=3, cutoff=0.6)
    near += [bare[one] for one in get_close_matches(name, bare, n=2, cutoff=0.7)]
    near += [one for one in known if len(name) >= _MIN_LETTERS and name in one]
    names = ", ".join(list(dict.fromkeys(near))[:3])
    server = " and no server here" if served else ""
    return NoModel(
        f"No provider{server} has a model that is named {model!r}.",
        f"Did you mean {names}?" if names else "Write it as provider:model, like openai:gpt-5.5.",
    )
