"""What each coding agent is given: variables and flags, as values."""

import json
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import pytest

from refold.cli.wrap.agents import Endpoint, Host, agent_for, launch
from refold.errors import InvalidInput
from refold.gateway.upstream import Upstream

HOME, FOLDER = Path("/users/ada"), Path("/ours/parcels")
GATEWAY = Endpoint("http://127.0.0.1:4321/secret")


def host(files=(), prints=(), **environment):
    """A machine with these files, where the agent prints this."""
    texts = {
        HOME / name if name[0] != "/" else Path(name): text for name, text in dict(files).items()
    }
    outputs = dict(prints)
    return Host(
        environment,
        HOME,
        FOLDER,
        lambda path: texts.get(path, ""),
        lambda arguments: outputs.get(" ".join(arguments), ""),
    )


def started(name, *arguments, on=None, resume=False, endpoint=GATEWAY):
    return launch(agent_for(name), on or host(), endpoint, arguments, resume=resume)


def upstream_of(settings):
    return Upstream(settings.name, settings.base_url, append_v1=settings.append_v1)


def settings_of(arguments):
    """The settings that Codex is given by `-c`."""
    pairs = pairwise(arguments)
    given = (value.partition("=") for flag, value in pairs if flag == "-c")
    return {name: json.loads(value) for name, _, value in given}


class TestClaude:
    def test_its_requests_go_to_the_gateway_and_from_there_to_anthropic(self):
        got = started("claude", "-p", "Where is the parcel?")
        assert got.environment["ANTHROPIC_BASE_URL"] == GATEWAY.address
        assert got.arguments[-2:] == ("-p", "Where is the parcel?")
        [upstream] = got.upstreams
        assert (upstream.base_url, upstream.key) == ("https://api.anthropic.com", "pass")

    def test_it_does_not_compact_and_does_not_stop_before_the_gateway_can(self):
        environment = started("claude").environment
        assert environment["DISABLE_AUTO_COMPACT"] == "1"
        assert int(environment["CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE"]) > 10_000_000

    def test_it_shows_its_model_the_recall_tools_at_once_and_asks_nobody(self):
        flags = dict(flag.split("=", 1) for flag in started("claude").arguments)
        [[name, server]] = json.loads(flags["--mcp-config"])["mcpServers"].items()
        assert (name, server["type"], server["url"]) == ("refold", "http", f"{GATEWAY.address}/mcp")
        assert server["alwaysLoad"] is True
        assert flags["--allowedTools"].split(",")[0] == "mcp__refold__recall_search"

    def test_a_prompt_is_no_value_of_its_flags(self):
        # Both flags take as many values as follow them.
        flags = started("claude", "fix it").arguments[:-1]
        assert all("=" in flag for flag in flags)

    def test_without_the_mcp_package_it_gets_no_tools(self):
        endpoint = Endpoint(GATEWAY.address, recall=False)
        assert started("claude", "hi", endpoint=endpoint).arguments == ("hi",)

    @pytest.mark.parametrize(
        ("file", "flagged"),
        [
            (None, False),
            (".claude/settings.json", True),
            ("/ours/parcels/.claude/settings.local.json", True),
        ],
    )
    def test_an_address_of_the_users_own_is_where_its_requests_go_on_to(self, file, flagged):
        own = {"env": {"ANTHROPIC_BASE_URL": "https://models.example/anthropic/"}}
        if file is None:
            got = started("claude", on=host(**own["env"]))
        else:
            got = started("claude", on=host({file: json.dumps(own)}))
        assert got.upstreams[0].base_url == "https://models.example/anthropic"
        # Its settings override the environment.
        again = [flag for flag in got.arguments if flag.startswith("--settings=")]
        assert bool(again) is flagged
        if flagged:
            [flag] = again
            values = json.loads(flag.partition("=")[2])["env"]
            assert values == {"ANTHROPIC_BASE_URL": GATEWAY.address}

    def test_two_flags_for_settings_are_one_too_many(self):
        own = host(
            {".claude/settings.json": '{"env": {"ANTHROPIC_BASE_URL": "https://a.example"}}'}
        )
        with pytest.raises(InvalidInput, match="takes one only"):
            started("claude", "--settings", "{}", on=own)
        assert started("claude", "--settings", "{}").arguments[-2:] == ("--settings", "{}")

    @pytest.mark.parametrize("value", ["1", "true"])
    def test_other_clouds_cannot_pass(self, value):
        with pytest.raises(InvalidInput, match="Amazon Bedrock"):
            started("claude", on=host(CLAUDE_CODE_USE_BEDROCK=value))
        settings = json.dumps({"env": {"CLAUDE_CODE_USE_VERTEX": value}})
        with pytest.raises(InvalidInput, match="Vertex"):
            started("claude", on=host({".claude/settings.json": settings}))
        assert started("claude", on=host(CLAUDE_CODE_USE_BEDROCK="0"))

    def test_work_elsewhere_cannot_pass(self):
        with pytest.raises(InvalidInput, match="in the background"):
            started("claude", "--bg", "fix it")

    def test_files_that_cannot_be_read_change_nothing(self):
        odd = host(
            {".claude/settings.json": "{not json", "/ours/parcels/.claude/settings.json": "[1]"}
        )
        assert started("claude", on=odd).upstreams[0].base_url == "https://api.anthropic.com"

    def test_it_has_a_flag_to_resume(self):
        assert started("claude", "--resume").arguments[-1:] == ("--resume",)
        assert started("claude", "more", resume=True).arguments[-2:] == ("--continue", "more")


class TestCodex:
    def test_its_requests_go_to_the_gateway_and_from_there_to_openai(self):
        got = started("codex", "exec", "hi")
        settings = settings_of(got.arguments)
        assert settings["openai_base_url"] == f"{GATEWAY.address}/v1"
        assert got.arguments[0] == "--no-daemon"
        assert got.arguments[-2:] == ("exec", "hi")
        assert got.upstreams[0].base_url == "https://api.openai.com/v1"

    def test_its_model_sees_the_recall_tools_without_a_search(self):
        settings = settings_of(started("codex").arguments)
        assert settings["mcp_servers.refold.url"] == f"{GATEWAY.address}/mcp"
        assert settings["features.code_mode.direct_only_tool_namespaces"] == ["mcp__refold"]

    def test_it_waits_for_the_recall_tools(self):
        # Servers that are not required have one second to start.
        settings = settings_of(started("codex").arguments)
        assert settings["mcp_servers.refold.required"] is True
        assert settings["mcp_servers.refold.startup_timeout_sec"] == 60

    @pytest.mark.parametrize(
        ("files", "prints"),
        [
            ({".codex/auth.json": '{"OPENAI_API_KEY": null, "tokens": {"access_token": "a"}}'}, {}),
            ({}, {"login status": "Logged in using ChatGPT\n"}),
        ],
    )
    def test_a_login_with_chatgpt_passes_to_chatgpt(self, files, prints):
        got = started("codex", on=host(files, prints))
        address = settings_of(got.arguments)["openai_base_url"]
        assert address == f"{GATEWAY.address}/backend-api/codex"
        assert got.upstreams[0].base_url == "https://chatgpt.com/backend-api/codex"
        assert "signed in with ChatGPT" in got.notes[0]

    def test_a_key_goes_before_a_login(self):
        files = {".codex/auth.json": '{"tokens": {"access_token": "a"}}'}
        got = started("codex", on=host(files, CODEX_API_KEY="sk-nobody"))
        assert got.upstreams[0].name == "openai"

    @pytest.mark.parametrize(
        ("config", "arguments"),
        [
            ('openai_base_url = "https://models.example/openai"', ()),
            ("", ("-c", "openai_base_url=https://models.example/openai", "exec")),
            ("", ('--config=openai_base_url="https://models.example/openai"',)),
        ],
    )
    def test_an_address_of_the_users_own_is_where_its_requests_go_on_to(self, config, arguments):
        got = started("codex", *arguments, on=host({".codex/config.toml": config}))
        [upstream] = got.upstreams
        assert (upstream.base_url, upstream.append_v1) == ("https://models.example/openai", False)
        # Of two settings of one name, Codex takes the last.
        named = [word for word in got.arguments if "openai_base_url" in word]
        assert named == [f'openai_base_url="{GATEWAY.v1}"']

    def test_another_provider_stays_the_provider(self):
        config = (
            'model_provider = "azure"\n[model_providers.azure]\nbase_url = "https://a.example/v1"'
        )
        got = started("codex", on=host({".codex/config.toml": config}))
        settings = settings_of(got.arguments)
        assert settings["model_providers.azure.base_url"] == f"{GATEWAY.address}/v1"
        assert "openai_base_url" not in settings
        assert got.upstreams[0].base_url == "https://a.example/v1"

    def test_a_profile_is_read(self):
        files = {
            ".codex/config.toml": '[model_providers.own]\nbase_url = "https://a.example/v1"',
            ".codex/work.config.toml": 'model_provider = "own"',
        }
        assert (
            started("codex", "-p", "work", on=host(files)).upstreams[0].base_url
            == "https://a.example/v1"
        )

    def test_a_provider_without_an_address_cannot_pass(self):
        with pytest.raises(InvalidInput, match="'bedrock'"):
            started("codex", "-c", 'model_provider="bedrock"')
        with pytest.raises(InvalidInput, match="--oss"):
            started("codex", "--oss")
        with pytest.raises(InvalidInput, match="in the cloud"):
            started("codex", "cloud")
        assert started("codex", "exec", "cloud")

    def test_the_gateway_acts_before_codex_does(self):
        catalog = {"models": [{"slug": "gpt-5.5", "context_window": 272_000}, {"slug": 1}, 2]}
        got = started("codex", on=host(prints={"debug models": json.dumps(catalog)}))
        assert got.windows == {"gpt-5.5": 231_200}
        assert got.windows["gpt-5.5"] < 0.9 * 272_000
        assert started("codex", on=host(prints={"debug models": "no catalog"})).windows == {}

    def test_it_has_no_flag_to_resume(self):
        assert started("codex", "--resume").arguments[-2:] == ("resume", "--last")
        assert started("codex", "go on", resume=True).arguments[-3:] == (
            "resume",
            "--last",
            "go on",
        )


class TestOpencode:
    def given(self, got):
        return json.loads(got.environment["OPENCODE_CONFIG_CONTENT"])

    def test_its_requests_go_to_the_gateway(self):
        got = started("opencode", "run", "hi")
        given = self.given(got)
        for name in ("anthropic", "openai"):
            assert given["provider"][name]["options"]["baseURL"] == GATEWAY.v1
        assert given["compaction"] == {"auto": False}
        assert given["mcp"]["refold"] == {"type": "remote", "url": GATEWAY.mcp, "enabled": True}
        assert got.arguments == ("run", "hi")
        bases = {upstream.name: upstream.v1_url for upstream in map(upstream_of, got.upstreams)}
        assert bases == {
            "anthropic": "https://api.anthropic.com/v1",
            "openai": "https://api.openai.com/v1",
        }

    def test_what_the_user_has_set_stays(self):
        own = {"theme": "dark", "mcp": {"time": {"type": "local", "command": ["time"]}}}
        given = self.given(started("opencode", on=host(OPENCODE_CONFIG_CONTENT=json.dumps(own))))
        assert given["theme"] == "dark"
        assert sorted(given["mcp"]) == ["refold", "time"]

    @pytest.mark.parametrize(
        "file",
        [
            ".config/opencode/opencode.jsonc",
            "/ours/opencode.json",
            "/ours/parcels/opencode.json",
        ],
    )
    def test_an_address_of_the_users_own_is_where_its_requests_go_on_to(self, file):
        text = """{
          // ours: "openai" is elsewhere
          "provider": {"openai": {"options": {"baseURL": "https://a.example//v1",}}}, /* end */
        }"""
        got = started("opencode", on=host({file: text}))
        assert got.upstreams[1].base_url == "https://a.example//v1"

    def test_it_has_no_flag_to_resume(self):
        assert started("opencode", "--resume").arguments == ("--continue",)


class TestCopilot:
    OWN: ClassVar = {"COPILOT_PROVIDER_BASE_URL": "https://a.example/v1"}

    def test_its_own_login_cannot_pass(self):
        with pytest.raises(InvalidInput, match="own login works at GitHub's address only") as error:
            started("copilot")
        assert "that provider bills" in error.value.fix

    def test_a_key_of_a_provider_can(self):
        got = started("copilot", "-p", "hi", on=host(**self.OWN))
        assert got.environment["COPILOT_PROVIDER_BASE_URL"] == GATEWAY.v1
        assert int(got.environment["COPILOT_PROVIDER_MAX_PROMPT_TOKENS"]) > 10_000_000
        assert got.upstreams[0].base_url == "https://a.example/v1"
        flag, *rest = got.arguments
        name, _, value = flag.partition("=")
        assert (name, rest) == ("--additional-mcp-config", ["-p", "hi"])
        assert json.loads(value)["mcpServers"]["refold"]["url"] == GATEWAY.mcp

    def test_a_provider_of_anthropics_format(self):
        got = started("copilot", on=host(**self.OWN, COPILOT_PROVIDER_TYPE="anthropic"))
        assert got.environment["COPILOT_PROVIDER_BASE_URL"] == GATEWAY.address
        assert got.upstreams[0].dialects == ("anthropic-messages",)
        with pytest.raises(InvalidInput, match="'azure'"):
            started("copilot", on=host(**self.OWN, COPILOT_PROVIDER_TYPE="azure"))


class TestQwen:
    def test_its_requests_go_to_the_gateway(self):
        got = started("qwen", "-p", "hi", on=host(OPENAI_BASE_URL="https://a.example/v1"))
        assert got.environment["OPENAI_BASE_URL"] == GATEWAY.v1
        assert got.environment["ANTHROPIC_BASE_URL"] == GATEWAY.address
        assert got.upstreams[1].base_url == "https://a.example/v1"
        server = json.loads(got.arguments[0].partition("=")[2])["mcpServers"]["refold"]
        assert server == {"httpUrl": GATEWAY.mcp, "trust": True, "alwaysLoadTools": True}
        assert got.arguments[1:] == ("-p", "hi")

    def test_an_address_in_its_settings(self):
        settings = {"security": {"auth": {"baseUrl": "https://a.example/v1"}}}
        got = started("qwen", on=host({".qwen/settings.json": json.dumps(settings)}))
        assert got.upstreams[1].base_url == "https://a.example/v1"

    @pytest.mark.parametrize("login", ["qwen-oauth", "gemini", "vertex-ai"])
    def test_other_logins_cannot_pass(self, login):
        settings = json.dumps({"security": {"auth": {"selectedType": login}}})
        own = host({".qwen/settings.json": settings})
        with pytest.raises(InvalidInput, match=login):
            started("qwen", on=own)
        with pytest.raises(InvalidInput, match=login):
            started("qwen", f"--auth-type={login}")
        assert started("qwen", "--auth-type", "openai", on=own)

    def test_models_with_addresses_of_their_own_are_spoken_of(self):
        models = {"modelProviders": {"openai": [{"id": "m", "baseUrl": "https://a.example"}]}}
        got = started("qwen", on=host({"/ours/parcels/.qwen/settings.json": json.dumps(models)}))
        assert any("do not come through" in note for note in got.notes)
        assert not any("do not come through" in note for note in started("qwen").notes)


class TestPi:
    def test_it_is_given_an_extension_for_this_process(self):
        got = started("pi", "-p", "hi")
        flag, file, *rest = got.arguments
        assert (flag, rest) == ("--extension", ["-p", "hi"])
        assert "registerProvider" in Path(file).read_text(encoding="utf-8")
        assert got.environment == {
            "REFOLD_GATEWAY": GATEWAY.address,
            "REFOLD_RECALL": GATEWAY.mcp,
        }

    def test_its_commands_are_left_as_they_are(self):
        assert started("pi", "install", "npm:x").arguments == ("install", "npm:x")

    def test_an_address_of_the_users_own_is_where_its_requests_go_on_to(self):
        models = {"providers": {"openai": {"baseUrl": "https://a.example/v1"}}}
        got = started("pi", on=host({".pi/agent/models.json": json.dumps(models)}))
        assert got.upstreams[1].base_url == "https://a.example/v1"


class TestOthers:
    def test_any_command_gets_the_usual_variables(self):
        got = started("./bin/my-agent", "--fast")
        assert got.arguments == ("--fast",)
        assert got.environment == {
            "ANTHROPIC_BASE_URL": GATEWAY.address,
            "OPENAI_BASE_URL": f"{GATEWAY.address}/v1",
            "OPENAI_API_BASE": f"{GATEWAY.address}/v1",
        }
        assert [upstream.base_url for upstream in got.upstreams] == [
            "https://api.anthropic.com",
            "https://api.openai.com/v1",
        ]

    def test_its_own_addresses_are_where_its_requests_go_on_to(self):
        own = host(
            OPENAI_BASE_URL="http://127.0.0.1:8080/v1/", ANTHROPIC_BASE_URL="https://a.example"
        )
        assert [upstream.base_url for upstream in started("x", on=own).upstreams] == [
            "https://a.example",
            "http://127.0.0.1:8080/v1",
        ]

    def test_an_address_that_is_none(self):
        with pytest.raises(InvalidInput, match="not one of HTTP"):
            started("x", on=host(OPENAI_BASE_URL="unix:/run/models"))

    def test_a_path_to_an_agent_is_that_agent(self):
        assert agent_for("/opt/node_modules/.bin/claude").title == "Claude Code"

    @pytest.mark.parametrize("name", ["claude", "codex", "opencode", "qwen", "pi", "x"])
    def test_a_proxy_does_not_stand_between(self, name):
        assert "NO_PROXY" not in started(name).environment
        got = started(name, on=host(https_proxy="http://proxy:3128", NO_PROXY="intranet"))
        assert got.environment["NO_PROXY"] == "intranet,127.0.0.1"
        assert got.environment["no_proxy"] == "127.0.0.1"
