"""Which settings a project's files may set: all of them, one by one; and what trust is bound to."""

import json
import os
from pathlib import Path

import pytest
from settings_left import leave_settings

from refold.errors import InvalidSetting
from refold.models import ModelSettings
from refold.settings import KEYS, SERVE_KEYS, Serve, Trust, load_settings, set_setting
from refold.settings.files import project_files
from refold.settings.names import leaves
from refold.settings.trust import right_of
from refold.view.profiles import PROFILES, Profile, ProjectRight, project_right

MODEL = 'models."openai:gpt-4o".'
PROJECT = {
    *("profile", "budget", "reserve", "dedupe", "delegates", "max_steps", "restore", "results"),
    "economics",
    *(f"trigger.{name}" for name in ("soft", "hard", "messages", "turns", "tokens", "generation")),
    *(f"trigger.{name}" for name in ("at_least", "min_messages", "min_messages_manual")),
    *(f"trigger.{name}" for name in ("after_request", "memory", "savings", "cache_seconds")),
    *(f"fold.keep.{name}" for name in ("head", "head_tokens", "unit", "amount", "least", "snap")),
    *(f"fold.{name}" for name in ("placement", "apply", "wait", "breadcrumb", "coverage")),
    *(f"fold.{name}" for name in ("call_limit", "references", "max_tokens", "ledger_tokens")),
    *("fold.system_chars", "fold.region_tokens"),
    *(f"fold.{name}" for name in ("user_chars", "user_messages", "user_clip")),
    *(f"rewrite.{name}" for name in ("sticky", "target", "target_tokens", "at_least", "low_water")),
    *(f"trim.{name}" for name in ("max_chars", "style", "protect", "last", "inflate")),
    *(f"archive.{name}" for name in ("min_chars", "excerpt", "names", "recent")),
    *(f"arguments.{name}" for name in ("max_chars", "keep", "names")),
    *(f"window.{name}" for name in ("max_messages", "max_turns", "max_tokens", "text_below")),
    *(f"window.{name}" for name in ("recent_messages", "recent_tokens", "read")),
    *("fit.low_water", "fit.orphans", "watch.share"),
    *(f"emergency.{name}" for name in ("result_chars", "user_chars", "turns")),
    *(f"{MODEL}{name}" for name in ("window", "output")),
}
"""The policy values. To open another setting to files that anybody may have written, say so here
and where it is declared."""
ALL = sorted(
    {"profile", *KEYS, *SERVE_KEYS, *(f"{MODEL}{one}" for one in ModelSettings.model_fields)}
)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    leave_settings(monkeypatch, tmp_path / "config")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def other_values() -> dict[str, object]:
    """For each setting a value that is valid and not the usual one."""
    values: dict[str, object] = dict(leaves(PROFILES["balanced"].model_dump(mode="json")))
    values |= dict(leaves({"serve": Serve().model_dump(mode="json")}))
    values |= dict.fromkeys((f"{MODEL}{one}" for one in ModelSettings.model_fields), 1_000)
    values["profile"] = "balanced"
    shipped = [dict(leaves(one.model_dump(mode="json"))) for one in PROFILES.values()]
    others: dict[str, object] = {}
    for key in ALL:
        usual = values[key]
        choices = [one[key] for one in shipped if key in one and one[key] != usual]
        if key == "serve.upstreams":
            others[key] = [{"name": "theirs", "base_url": "http://127.0.0.1:9/v1"}]
        elif key in ("profile", "summarizer", "serve.host"):
            others[key] = {"profile": "co-cli", "summarizer": "a:b"}.get(key, "0.0.0.0")  # noqa: S104
        elif key == "store.forget_journal":
            others[key] = "/elsewhere/journal"
        elif isinstance(usual, bool):
            others[key] = not usual
        elif isinstance(usual, float) or key.startswith("trigger.hard"):
            others[key] = 0.4 if key == "watch.share" else 0.9 if usual != 0.9 else 0.85
        elif isinstance(usual, int):
            others[key] = usual + 1
        else:
            others[key] = choices[0] if choices else _another(key, usual)
    return others


def _another(key: str, usual: object) -> object:
    field = KEYS.get(key) or SERVE_KEYS[key]
    choices = getattr(field.annotation, "__args__", ())
    if isinstance(usual, str) and choices:
        return next(one for one in choices if one != usual)
    return [[0, 0.5]] if key == "trigger.generation" else f"{usual} another"


def toml(key: str, value: object) -> str:
    text = json.dumps(value)
    if key == "serve.upstreams":
        [table] = value
        return "[[serve.upstreams]]\n" + "".join(
            f"{name} = {json.dumps(one)}\n" for name, one in table.items()
        )
    return f"{key} = {text}\n"


@pytest.mark.parametrize("key", ALL)
def test_each_setting_of_an_untrusted_file_applies_only_if_it_is_a_policy_value(place, key):
    (place / "refold.toml").write_text(toml(key, other_values()[key]))
    before = load_settings(folder=Path("/"))
    found = load_settings()
    left_out = {one.key for one in found.left_out}
    changed = {
        name
        for name, value in found.values().items()
        if before.values().get(name) != value and name != key
    }
    if key in PROJECT:
        assert found.values()[key] != before.values().get(key)
        assert key == "profile" or changed == set()
        assert all(right_of(name) is not ProjectRight.NONE for name in changed)
    else:
        assert left_out == {key}
        assert found.values() == before.values()
    # The same file, trusted, sets it.
    Trust.load().grant(project_files(place))
    trusted = load_settings()
    assert trusted.left_out == ()
    assert trusted.sources[key].level == "project"


def test_a_new_setting_is_closed_to_projects_until_it_says_otherwise():
    class Newer(Profile):
        webhook: str = ""

    assert project_right(Newer.model_fields["webhook"]) is ProjectRight.NONE
    assert right_of("a.setting.of.tomorrow") is ProjectRight.NONE


@pytest.mark.parametrize("name", ["refold.toml", "pyproject.toml", "config.json"])
def test_trust_is_of_these_bytes_at_this_place(place, name):
    texts = {
        "refold.toml": 'summarizer = "a:b"\n',
        "pyproject.toml": '[tool.refold]\nsummarizer = "a:b"\n',
        "config.json": '{"summarization_model": "a:b"}',
    }
    file = place / name
    file.write_text(texts[name])
    Trust.load().grant(project_files(place))
    assert load_settings().profile.summarizer == "a:b"
    file.write_text(texts[name].replace("a:b", "c:d"))
    changed = load_settings()
    assert changed.profile.summarizer == "auto"
    assert [one.verdict for one in changed.left_out] == ["changed"]
    other = place.parent / "elsewhere"
    other.mkdir()
    (other / name).write_text(texts[name])
    assert [one.verdict for one in load_settings(folder=other).left_out] == ["unknown"]


def test_what_was_read_is_what_is_trusted(place):
    """The file is replaced between the question and the answer."""
    file = place / "refold.toml"
    file.write_text('summarizer = "shown:one"\n')
    shown = project_files(place)
    file.write_text('summarizer = "hidden:one"\n')
    Trust.load().grant(shown)
    assert load_settings().profile.summarizer == "auto"


def test_a_link_is_judged_by_what_it_leads_to(place):
    target = place.parent / "target.toml"
    target.write_text('summarizer = "a:b"\n')
    (place / "refold.toml").symlink_to(target)
    Trust.load().grant(project_files(place))
    assert load_settings().profile.summarizer == "a:b"
    target.write_text('summarizer = "c:d"\n')
    assert load_settings().profile.summarizer == "auto"


def test_a_link_out_of_the_folder_is_not_written_through(place):
    target = place.parent / "other.toml"
    target.write_text("budget = 1\n")
    (place / "refold.toml").symlink_to(target)
    with pytest.raises(InvalidSetting, match="outside its folder"):
        set_setting("budget", "2", project=True)
    assert target.read_text() == "budget = 1\n"


def test_what_the_user_writes_to_a_new_or_trusted_file_applies(place):
    set_setting("serve.port", "9000", project=True)
    assert load_settings().serve.port == 9_000
    set_setting("serve.port", "9001", project=True)
    assert load_settings().serve.port == 9_001
    (place / "refold.toml").write_text("serve.port = 9002\n")
    kept = set_setting("serve.metrics", "true", project=True)
    assert "not trusted" in str(kept.instead)
    assert load_settings().serve == Serve()


def test_the_record_is_for_the_user_alone_and_a_broken_one_trusts_nothing(place):
    (place / "refold.toml").write_text('summarizer = "a:b"\n')
    Trust.load().grant(project_files(place))
    record = place.parent / "state" / "refold" / "trust.json"
    assert record.stat().st_mode & 0o777 == 0o600
    for text in ("", "[]", '{"files": 5}', '{"files": [5, {"path": 1}]}', "\x00"):
        record.write_text(text)
        assert load_settings().profile.summarizer == "auto"


def test_the_search_upwards_ends_at_the_repository(place):
    (place / "refold.toml").write_text("budget = 7\n")
    inner = place / "vendor" / "clone"
    inner.mkdir(parents=True)
    assert load_settings(folder=inner).profile.budget == 7
    (inner / ".git").write_text("gitdir: elsewhere\n")
    assert load_settings(folder=inner).profile.budget == 0


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "nowhere"])
def test_what_is_no_file_is_no_settings(place, kind):
    path = place / "refold.toml"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to("refold.toml" if kind == "loop" else "nothing.toml")
    assert load_settings().left_out == ()


def test_a_huge_file_is_refused(place):
    (place / "refold.toml").write_text("# " + "x" * (1 << 20))
    with pytest.raises(InvalidSetting, match="larger than 1 MB"):
        load_settings()


def test_names_cannot_write_to_the_terminal(place, monkeypatch):
    odd = place / "a\x1b]0;owned\x07\u202e"
    odd.mkdir()
    monkeypatch.chdir(odd)
    (odd / "refold.toml").write_text('"no\\u001bsetting" = 1\n')
    with pytest.raises(InvalidSetting) as caught:
        load_settings()
    assert caught.value.what.isprintable()
    (odd / "refold.toml").write_text('summarizer = "a\\u001b:b"\n')
    [left_out] = load_settings().left_out
    assert str(left_out.source).isprintable()


def test_a_relative_folder_of_the_user_is_ignored(place, monkeypatch):
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, ".")
    monkeypatch.setenv("HOME", str(place.parent))
    (place / "refold").mkdir()
    (place / "refold" / "config.toml").write_text('summarizer = "a:b"\n')
    assert load_settings().profile.summarizer == "auto"
