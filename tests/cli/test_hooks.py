"""`refold hooks`: what it writes into agents' settings, and takes out again."""

# ruff: noqa: F811, F401 - fixtures are imported

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from refold_commands import quick, terminal

from refold.cli.hooks.agents import AGENTS
from refold.cli.hooks.json_text import parse, with_item, without
from refold.errors import InvalidInput

AGENT_VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_CONFIG_DIR")
ITEM = {"matcher": "compact", "hooks": [{"type": "command", "command": "x"}]}
SETTINGS = """{
    // mine
    "model": "opus",
    "hooks": {
        "Stop": [
            { "hooks": [{ "type": "command", "command": "say done" }] }, // aloud
        ],
    },
}
"""
CONFIG = """model = "x"  # mine

[[hooks.Stop]]
[[hooks.Stop.hooks]]
type = "command"
command = "say done"
"""


@pytest.fixture
def home(terminal):
    for name in AGENT_VARIABLES:
        terminal.environment.pop(name, None)
    terminal.environment["XDG_STATE_HOME"] = str(terminal.folder / "state")
    terminal.environment["XDG_CONFIG_HOME"] = terminal.environment["HOME"] + "/.config"
    return Path(terminal.environment["HOME"])


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def hooked(terminal, command, agent):
    done = terminal.run("hooks", command, agent, "--yes")
    assert done.returncode == 0, done
    return done.stdout


def states(terminal):
    listed = json.loads(terminal.does("hooks", "status", "--json"))
    return {each["agent"]: each for each in listed}


@pytest.mark.parametrize("agent", list(AGENTS))
def test_without_any_settings_they_are_made_and_gone_again(terminal, home, agent):
    hooked(terminal, "install", agent)
    state = states(terminal)[agent]
    assert (state["installed"], state["current"]) == (True, True)
    path = Path(state["path"])
    assert path.is_relative_to(home)
    text = path.read_text()
    assert "has them already" in hooked(terminal, "install", agent)
    assert path.read_text() == text
    removed = hooked(terminal, "uninstall", agent)
    assert "the file is removed" in removed
    assert "+{}" not in removed
    assert not path.exists()
    assert not states(terminal)[agent]["installed"]


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("claude", ".claude/settings.json", SETTINGS),
        ("claude", ".claude/settings.json", SETTINGS.replace("\n", "\r\n")),
        ("claude", ".claude/settings.json", '{"hooks": {"Stop": []}}'),
        ("codex", ".codex/hooks.json", '{\n\t"hooks": {}\n}\n'),
        ("codex", ".codex/config.toml", CONFIG),
    ],
)
def test_uninstall_brings_back_every_byte(terminal, home, agent, name, text):
    path = put(home / name, text)
    hooked(terminal, "install", agent)
    assert path.read_bytes() != text.encode()
    hooked(terminal, "uninstall", agent)
    assert path.read_bytes() == text.encode()


def test_what_the_user_changed_since_stays(terminal, home):
    path = put(home / ".claude/settings.json", SETTINGS)
    hooked(terminal, "install", "claude")
    path.write_text(path.read_text().replace('"opus"', '"sonnet"  /* for now */'))
    hooked(terminal, "uninstall", "claude")
    expected = SETTINGS.replace('"opus"', '"sonnet"  /* for now */')
    assert parse(path.read_text()).plain() == parse(expected).plain()
    assert "for now" in path.read_text()
    assert "// aloud" in path.read_text()


def test_the_users_own_hooks_stay_where_they_are(terminal, home):
    path = put(home / ".claude/settings.json", SETTINGS)
    hooked(terminal, "install", "claude")
    value = parse(path.read_text()).plain()
    assert value["hooks"]["Stop"][0]["hooks"][0]["command"] == "say done"
    assert value["hooks"]["SessionStart"][0]["matcher"] == "compact"
    assert "// mine" in path.read_text()


def test_hooks_of_an_older_version_are_replaced(terminal, home):
    path = put(home / ".claude/settings.json", SETTINGS)
    hooked(terminal, "install", "claude")
    new = path.read_text()
    path.write_text(new.replace(sys.executable, "/gone/python"))
    state = states(terminal)["claude"]
    assert (state["installed"], state["current"]) == (True, False)
    hooked(terminal, "install", "claude")
    assert parse(path.read_text()).plain() == parse(new).plain()


def test_codex_gets_them_beside_hooks_that_stand_in_its_config(terminal, home):
    path = put(home / ".codex/config.toml", CONFIG)
    hooked(terminal, "install", "codex")
    value = tomllib.loads(path.read_text())
    assert len(value["hooks"]["Stop"]) == 2
    assert value["hooks"]["SessionStart"][0]["hooks"][0]["additionalContextLimit"] == 4000
    assert path.read_text().startswith(CONFIG)
    assert not (home / ".codex/hooks.json").exists()


def test_hooks_in_codexs_own_file_are_found_after_the_user_wrote_others_elsewhere(terminal, home):
    hooked(terminal, "install", "codex")
    put(home / ".codex/config.toml", CONFIG)
    hooked(terminal, "uninstall", "codex")
    assert not (home / ".codex/hooks.json").exists()


def test_what_codex_wrote_between_them_is_not_cut_out(terminal, home):
    path = put(home / ".codex/config.toml", CONFIG)
    hooked(terminal, "install", "codex")
    state = '[hooks.state."x:stop:0:0"]\ntrusted_hash = "sha256:1"\n'
    text = path.read_text().replace("# <<< Hooks", f"{state}# <<< Hooks")
    path.write_text(text)
    done = terminal.run("hooks", "uninstall", "codex", "--yes")
    assert done.returncode == 1
    assert path.read_text() == text


def test_codex_says_that_its_user_must_review_them(terminal, home):
    assert "/hooks" in hooked(terminal, "install", "codex")
    assert not states(terminal)["codex"]["reviewed"]
    path = home / ".codex/hooks.json"
    events = ("session_start", "user_prompt_submit", "stop", "session_end")
    tables = [f'[hooks.state."{path}:{name}:0:0"]\ntrusted_hash = "sha256:1"' for name in events]
    put(home / ".codex/config.toml", "\n".join(tables))
    assert states(terminal)["codex"]["reviewed"]


def test_the_change_is_shown_and_nothing_done_where_nobody_can_agree(terminal, home):
    done = terminal.run("hooks", "install", "claude")
    assert done.returncode == 2
    assert "+" in done.stdout
    assert "--yes" in done.stderr
    assert not (home / ".claude").exists()


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("agent", list(AGENTS))
def test_before_it_asks_it_says_what_changes_in_which_file_and_why(terminal, agent):
    file = str(AGENTS[agent].path()).replace(str(Path.home()), "~")
    done = terminal.run("hooks", "install", agent)
    what, rest = done.stdout.split("\n", 1)
    assert what.startswith(f"This writes a new file, {file}, with {AGENTS[agent].interface}.")
    assert "to copy the session into your log" in what
    assert rest.startswith("---")
    for recall, name in zip((False, True), (file, f"~/{RECALL_FILES[agent]}"), strict=True):
        said = with_recall(terminal, agent) if recall else hooked(terminal, "install", agent)
        assert name in said.split("\n--- ")[0]


def test_a_backup_is_kept(terminal, home):
    put(home / ".claude/settings.json", SETTINGS)
    said = hooked(terminal, "install", "claude")
    [backup] = [line for line in said.splitlines() if line.startswith("Backup: ")]
    copy = Path(backup.removeprefix("Backup: ").replace("~", str(home)))
    assert copy.read_bytes() == SETTINGS.encode()
    assert copy.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["{", '{"hooks": []}', '{"hooks": {"Stop": 1}}', "[1]", "x"])
def test_settings_that_are_not_as_they_should_be_are_left_alone(terminal, home, text):
    path = put(home / ".claude/settings.json", text)
    done = terminal.run("hooks", "install", "claude", "--yes")
    assert (done.returncode, path.read_text()) == (1, text)
    assert "~/.claude/settings.json" in done.stderr


def test_a_plugin_of_somebody_else_is_not_overwritten(terminal, home):
    path = put(home / ".config/opencode/plugins/refold.js", "export const X = 1\n")
    assert terminal.run("hooks", "install", "opencode", "--yes").returncode == 1
    assert path.read_text() == "export const X = 1\n"


RECALL_FILES = {
    "claude": ".claude.json",
    "codex": ".codex/config.toml",
    "opencode": ".config/opencode/plugins/refold.js",
}
CLAUDE_JSON = """{
  "numStartups": 3,
  "mcpServers": {
    "other": { "command": "x", "env": { "KEY": "sk-secret" } }
  },
  "oauthAccount": { "emailAddress": "a@example.org" }
}
"""


def with_recall(terminal, agent):
    done = terminal.run("hooks", "install", agent, "--recall", "--yes")
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.parametrize("agent", list(AGENTS))
def test_recall_is_installed_with_consent_and_gone_again(terminal, home, agent):
    said = hooked(terminal, "install", agent)
    assert f"refold hooks install {agent} --recall" in said
    assert not states(terminal)[agent]["recall"]
    with_recall(terminal, agent)
    state = states(terminal)[agent]
    assert (state["recall"], state["current"]) == (True, True)
    text = (home / RECALL_FILES[agent]).read_text()
    assert '"mcp","--cwd","."' in re.sub(r"\s+", "", text)
    assert "has them already" in with_recall(terminal, agent)
    assert (home / RECALL_FILES[agent]).read_text() == text
    hooked(terminal, "uninstall", agent)
    left = [path for path in home.rglob("*") if path.is_file() and "state" not in path.parts]
    assert left == []
    assert not states(terminal)[agent]["recall"]


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        ("claude", CLAUDE_JSON),
        ("claude", '{"mcpServers": {}}'),
        ("claude", '{"a": 1}\n'),
        ("codex", CONFIG),
        ("codex", 'model = "x"'),
        ("codex", '[mcp_servers.other]\ncommand = "x"\n\n[projects."/p"]\nlevel = "high"\n'),
    ],
)
def test_without_recall_every_byte_is_back(terminal, home, agent, text):
    path = put(home / RECALL_FILES[agent], text)
    with_recall(terminal, agent)
    assert "refold_recall" in path.read_text()
    hooked(terminal, "uninstall", agent)
    assert path.read_text() == text


def test_recall_goes_where_the_agent_wrote_to_the_file_meanwhile(terminal, home):
    path = put(home / ".claude.json", CLAUDE_JSON)
    with_recall(terminal, "claude")
    path.write_text(path.read_text().replace('"numStartups": 3', '"numStartups": 4'))
    path.chmod(0o600)
    hooked(terminal, "uninstall", "claude")
    assert parse(path.read_text()).plain() == {**parse(CLAUDE_JSON).plain(), "numStartups": 4}
    assert path.stat().st_mode & 0o077 == 0


def test_recall_goes_where_codex_wrote_beneath_it(terminal, home):
    path = put(home / ".codex/config.toml", 'model = "x"  # mine\n')
    with_recall(terminal, "codex")
    more = (
        '\n[mcp_servers.refold_recall.tools.recall_read]\napproval_mode = "approve"\n'
        '\n# trusted\n[projects."/p"]\ntrust_level = "trusted"\n'
    )
    path.write_text(path.read_text() + more)
    hooked(terminal, "uninstall", "codex")
    expected = 'model = "x"  # mine\n\n# trusted\n[projects."/p"]\ntrust_level = "trusted"\n'
    assert path.read_text() == expected


def test_servers_that_leave_no_room_for_another_are_left_alone(terminal, home):
    path = put(home / ".codex/config.toml", 'mcp_servers = { other = { command = "x" } }\n')
    done = terminal.run("hooks", "install", "codex", "--recall", "--yes")
    assert done.returncode == 1
    assert "[mcp_servers.name]" in done.stderr
    assert "refold" not in path.read_text()


def test_what_stands_beside_a_server_is_not_shown(terminal, home):
    put(home / ".claude.json", CLAUDE_JSON)
    assert "sk-secret" not in with_recall(terminal, "claude")


def prompt(folder, words, session="s"):
    message = {"role": "user", "content": words}
    record = {"type": "user", "uuid": words, "sessionId": session, "message": message}
    return json.dumps({**record, "cwd": str(folder)}) + "\n"


def answer(folder, words, session="s", **call):
    blocks = [{"type": "text", "text": words}, {"type": "tool_use", "id": "c1", **call}]
    message = {"role": "assistant", "id": words, "content": blocks}
    record = {"type": "assistant", "uuid": words, "sessionId": session, "message": message}
    return json.dumps({**record, "cwd": str(folder)}) + "\n"


def test_what_the_model_would_be_shown_is_printed_and_nothing_kept(terminal, home):
    folder = terminal.folder.resolve()
    projects = home / ".claude/projects/x"
    output = "<bash-stdout></bash-stdout><bash-stderr>blue whale</bash-stderr>"
    words = prompt(folder, "Never push to main.") + prompt(folder, output)
    words += answer(folder, "Now.", name="Read", input={"file_path": "src/depot_map.py"})
    put(projects / "s.jsonl", words)
    other = put(projects / "o.jsonl", prompt("/elsewhere", "Paint it red.", "o"))
    before = {*terminal.folder.rglob("*")}
    shown = terminal.does("hooks", "preview", "claude")
    assert shown.startswith("[From Refold: what was said in this conversation")
    assert "Never push to main." in shown
    assert "blue whale" not in shown
    assert "bash-std" not in shown
    assert "src/depot_map.py" in shown
    assert "file_path" not in shown
    assert "Paint it red." not in shown
    assert "Paint it red." in terminal.does("hooks", "preview", "claude", str(other))
    assert {*terminal.folder.rglob("*")} == before


def test_a_preview_of_no_session_says_where_to_look(terminal, home):
    missing = terminal.run("hooks", "preview", "codex")
    assert missing.returncode == 1
    assert "Codex has no session that began in" in missing.stderr
    assert "refold hooks preview codex FILE" in missing.stderr
    file = put(home / "x.jsonl", prompt("/x", "Paint it red."))
    assert terminal.run("hooks", "preview", "codex", str(file)).returncode == 1


def test_an_agent_without_hooks_is_wrong_usage(terminal):
    what, fix = terminal.fails("hooks", "install", "aider", code=2)
    assert "aider" in what
    assert "refold wrap" in fix


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"a": 1}',
        '{"a": [1, 2]}',
        '{\n  "a": 1 // last\n}\n',
        '{\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t1\n\t\t]\n\t}\n}\n',
        '{"hooks": {"Stop": [ 1 ]}, "z": "é"}',
        "{ /* nothing yet */ }",
        '{"hooks":{"Stop":[\n 1]}}',
        '{"hooks": {"Stop": [1,],},}',
    ],
)
def test_an_item_is_added_and_taken_out_and_all_else_stays(text):
    before = parse(text).plain()
    added = with_item(text, ["hooks", "Stop"], ITEM)
    value = parse(added).plain()
    groups = value["hooks"]["Stop"]
    assert groups.pop() == ITEM
    assert groups == before.get("hooks", {}).get("Stop", [])
    assert {name: value[name] for name in before if name != "hooks"} == {
        name: before[name] for name in before if name != "hooks"
    }
    removed = without(added, ["hooks", "Stop", len(groups)])
    assert parse(removed).plain()["hooks"]["Stop"] == groups
    for comment in ("// last", "/* nothing yet */"):
        assert (comment in removed) == (comment in text)


@pytest.mark.parametrize(
    "text", ["", "{", '{"a"}', '{"a": 1} x', "{'a': 1}", "[" * 300, '{"a": nul}']
)
def test_what_is_not_json_is_refused(text):
    with pytest.raises(InvalidInput):
        parse(text)
