"""`refold lab`: what a person sees of their own sessions, and what a program does."""

import asyncio
import json
import re
import subprocess
import sys
from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper

import pytest
import typer
from lab_files import CLAUDE, FILES, claude, claude_call, claude_result, claude_said, lines
from rich.console import Console
from shown import changed
from typer.testing import CliRunner

from refold.cli.lab import _rules, as_json, lab
from refold.cli.lab_report import dollars, finding, notes, percent, report, show, tokens
from refold.fold.trigger import sized
from refold.lab import Prices, Reader, RecordedMessage, Recording, Share, baselines, o200k, play
from refold.lab.measure import EVERYTHING, Job, each_measured, jobs_for, measured, totals
from refold.lab.report import CaseOptions, case_of, prices_of
from refold.lab.session_files import read_session_file
from refold.lab.session_policy import SessionPolicy, placeholder_summary
from refold.models import counter_for
from refold.models.experience import Setup
from refold.view.budget import Budget
from refold.view.profiles import PROFILES

pytest.importorskip("genai_prices")

app = typer.Typer(rich_markup_mode=None)
app.command("lab")(lab)


@pytest.fixture(autouse=True)
def _plain(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


def said(*arguments, code=0):
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def long_session(turns=40):
    records = []
    for turn in range(turns):
        name = f"src/part_{turn}.py"
        records += [
            claude("user", f"u{turn}", None, f"What does part {turn} do?"),
            claude_said(f"a{turn}", None, f"m{turn}", claude_call(f"c{turn}", file_path=name)),
            claude_result(f"r{turn}", None, f"c{turn}", f"def work_{turn}(): ...\n" * 30),
            claude_said(
                f"b{turn}",
                None,
                f"n{turn}",
                {"type": "text", "text": f"It works, like src/part_{turn // 3}.py does."},
            ),
        ]
    return lines(*records)


@pytest.fixture(scope="module")
def long_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("lab") / "long.jsonl"
    path.write_bytes(long_session())
    return path


@pytest.fixture(scope="module")
def of(long_file):
    """The totals of one long session."""
    [recording] = read_session_file(long_file).recordings
    case = case_of(recording, CaseOptions(window=8_000, threshold=6_000))
    rules = [*baselines()]
    jobs = jobs_for([case], [PROFILES["balanced"]], rules)
    return totals([case], [one for job in jobs for one in measured(job)], ["balanced"], rules)


@pytest.fixture(scope="module")
def told(of, long_file):
    return as_json(of, [read_session_file(long_file)], 0)


def printed(of, path, width=80):
    console = Console(width=width, record=True, file=StringIO(), markup=False, highlight=False)
    console.print(report(of, [read_session_file(path)], width=width))
    return console.export_text()


def test_the_report_begins_with_the_finding_and_fits_any_width(of, long_file, told):
    for width in (80, 100, 140):
        text = printed(of, long_file, width=width)
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text.partition("What was read")[0]
    text = printed(of, long_file)
    joined = " ".join(text.split())
    assert joined.startswith(told["finding"])
    assert "With balanced, this session would have cost" in joined
    for word in ("cost", "cached", "kept", "refused", "largest", "folds", "rules of others"):
        assert word in text
    assert "Claude Code, 160 messages" in text


def test_the_json_holds_the_figures_and_the_folds(told):
    rows = {one["policy"]: one for one in told["policies"]}
    assert [*rows][:3] == ["none", "balanced", "sliding window, naive"]
    none, ours = rows["none"], rows["balanced"]
    assert (none["cost_ratio"], none["retained"]["rate"], none["orphaned"]) == (1, 1, 0)
    assert none["refused"] > ours["refused"] == 0
    assert ours["cost_ratio"] == pytest.approx(ours["cost"] / none["cost"])
    assert ours["largest"] < none["largest"]
    assert ours["folds"] == len(ours["sessions"][0]["folds"]) > 0
    for fold in ours["sessions"][0]["folds"]:
        assert 0 < fold["at"] < 160
        assert fold["after"] < fold["before"]
    [session] = told["sessions"]
    assert (session["model"], session["prices_known"]) == ("claude-opus-4-5", True)
    assert (session["window"], session["threshold"], session["short"]) == (8_000, 6_000, False)
    [file] = told["files"]
    assert (file["format"], file["messages"], file["broken_lines"]) == ("Claude Code", 160, 0)
    json.dumps(told, allow_nan=False)


def test_other_old_content_is_counted_by_definitions_of_its_own(told, of):
    rows = {one["policy"]: one for one in told["policies"]}
    for kind in ("other_names", "edits", "lines"):
        assert rows["none"][kind]["found"] == rows["none"][kind]["of"]
        low, high = rows["balanced"]["intervals_over_sessions"][kind]
        assert low <= rows["balanced"][kind]["rate"] <= high
    row = replace(of.leading.row, other_names=Share(7, 10), edits=Share(0, 0), lines=Share(1, 1))
    leading = replace(of, every=(of.everything, replace(of.leading, row=row)))
    line = "balanced kept 7 of 10 names of other kinds (70%), 1 of 1 long line."
    assert f"Of other old content used again, {line}" in notes(leading)


def test_of_few_names_a_count_is_shown_and_no_percentage(of, long_file):
    def kept(found, count):
        row = replace(of.leading.row, retained=Share(found, count))
        leading = replace(of, every=(of.everything, replace(of.leading, row=row)))
        [cells] = [
            one
            for one in printed(leading, long_file).splitlines()
            if "balanced " in one and "%" in one
        ]
        return finding(leading), cells

    words, cells = kept(7, 9)
    assert words.endswith("the model would still have seen 7 of 9 names that it used again.")
    assert " 7 of 9 " in cells
    words, cells = kept(11, 14)
    assert words.endswith("11 of 14 names that it used again (79%).")
    assert " 79% " in cells
    assert kept(1, 1)[0].endswith("1 of 1 name that it used again.")


def test_ones_own_settings_are_a_row_of_their_own(long_file, tmp_path):
    few = (long_file, "--policy", "ledger", "--window", "8000", "--json")

    def rows(*arguments):
        return [one["policy"] for one in json.loads(said(*few, *arguments))["policies"]][1:-1]

    assert rows()[0] == "balanced"
    (tmp_path / "refold.toml").write_text("[trigger]\nsavings = 0\n")
    assert rows()[:2] == ["your settings", "balanced"]
    assert rows("--profile", "mine") == ["your settings"]
    assert rows("--profile", "copilot") == ["copilot"]


def test_without_a_terminal_lines_say_how_far_it_is(long_file, monkeypatch):
    monkeypatch.setattr("refold.cli.lab._SECONDS_BETWEEN_LINES", 0)
    done = CliRunner().invoke(app, [str(long_file), "--profile", "balanced", "--policy", "ledger"])
    assert done.stderr.splitlines()[-1] == "Replayed 1 of 1 session."


def test_instructions_tools_and_an_expired_cache_are_paid_for(tmp_path):
    path = tmp_path / "two.jsonl"
    path.write_bytes(
        lines(
            claude("user", "u1", None, "Go."),
            claude_said("a1", "u1", "m1", {"type": "text", "text": "I go."}),
            claude("user", "u2", "a1", "Still?", minute=10),
            claude_said("a2", "u2", "m2", {"type": "text", "text": "Still."}, minute=10),
        )
    )
    few = (path, "--json", "--profile", "balanced", "--policy", "ledger")
    prices = ("--prices", "1,0,0,1")  # a token from the cache is free
    sent = {}
    for lifetime in ("none", "1h", "5m"):
        options = ("--fixed", "1000", "--lifetime", lifetime)
        told = json.loads(said(*few, *prices, *options))
        none = told["policies"][0]
        sent[lifetime] = none["sent"]
        assert round(none["cost"] * 1e6) == none["sent"] - none["cached"]
        assert (none["cached"] == 0) == (lifetime == "5m")
    assert min(sent.values()) == max(sent.values()) > 2_000
    [session] = json.loads(said(*few, "--fixed", "recorded"))["sessions"]
    assert 0 < session["fixed"] < 29
    assert "instructions and tools" in said(path, "--fixed", "1000")
    assert "not a number of tokens" in said(path, "--fixed", "-1", code=2)


def test_rules_act_when_profiles_do_though_they_count_other_tokens(long_file):
    [recording] = read_session_file(long_file).recordings
    case = case_of(recording, CaseOptions(window=80_000, threshold=6_000))
    balanced = PROFILES["balanced"]
    [ours] = measured(Job(0, case, (), case.adapt(balanced), case.budget(balanced)))
    [rule] = measured(Job(0, case, ("head / ledger / tail",)))
    assert abs(ours.marks[0].at - rule.marks[0].at) <= 4
    assert rule.marks[0].before < ours.marks[0].before  # of a model whose tokens are shorter


def test_every_row_says_how_far_it_is_from_the_best_fold_times(long_file):
    few = (long_file, "--bound", "--threshold", "6000", "--profile", "balanced", "--policy", "size")
    text = said(*few, "--policy", "ledger", "--policy", "ski")
    assert max(map(len, text.splitlines())) <= 80
    _, _, after = text.partition("Against the best fold times\n")
    header, *rows = after.partition("Costs of input")[0].splitlines()
    assert header.split()[3:8] == ["timing", "max", "all", "in", "max"]
    names = [row[:26].strip() for row in rows]
    assert names == [
        "everything",
        "balanced",
        "a summary of names",
        "the same at twice its size",
        "the same at 2.5 times that",
        "the same, by ski rental",
    ]
    told = json.loads(said(*few, "--json"))
    for one in told["policies"]:
        of_bound, account = one["of_bound"], one["account"]
        assert of_bound["timing"]["pooled"] >= 1
        assert of_bound["timing"]["pooled"] == pytest.approx(account["timing"] / account["bound"])
        assert account["all_in"] == pytest.approx(account["own"] + account["rereads"])
    assert told["policies"][0]["account"]["rereads"] == 0
    assert {one["account"]["bound"] for one in told["policies"]} == {account["bound"]}
    assert told["sessions"][0]["fold_of_the_bound"] == 1_200
    assert "Against the best" not in said(long_file, "--profile", "balanced", "--policy", "ledger")


def test_a_replay_waits_for_its_folds_however_slow_they_are(long_file):
    [recording] = read_session_file(long_file).recordings
    copilot = PROFILES["copilot"]
    hurried = copilot.model_copy(update={"fold": copilot.fold.model_copy(update={"wait": 0.01})})
    setup = Setup("", counter_for(""), Budget(window=8_000), hurried)

    async def slow(*arguments):
        await asyncio.sleep(0.1)
        return await placeholder_summary(*arguments)

    marks = []
    for write in (placeholder_summary, slow):
        policy = SessionPolicy(setup, write=write)
        marks.append(play(recording, policy, Reader(o200k())).marks)
    assert marks[0] == marks[1] != ()


def test_the_best_is_the_cheapest_that_keeps_names_and_is_never_refused(told):
    good = [
        one for one in told["policies"] if one["retained"]["rate"] >= 0.9 and not one["refused"]
    ]
    assert told["best"] == min(good, key=lambda one: one["cost"])["policy"]


def test_the_folds_are_shown_where_they_would_have_been(of, long_file):
    text = printed(of, long_file)
    marks = of.of(0, "balanced").marks
    assert f"balanced at message {marks[0].at} of 160: " in text
    [bar] = [line for line in text.splitlines() if line.startswith("  balanced   ├")]
    assert bar.count("▼") == len(marks)
    cells = bar[bar.index("├") + 1 : bar.index("┤")]
    assert cells.index("▼") == marks[0].at * len(cells) // 160


def test_short_sessions_are_said_to_be_short(tmp_path):
    for name in ("one.jsonl", "two.jsonl"):
        (tmp_path / name).write_bytes(FILES["Claude Code"] + b"{broken\n")
    (tmp_path / "notes.txt").write_text("Nothing.")
    text = " ".join(said(tmp_path, tmp_path / "notes.txt", "--policy", "MASK").split())
    assert text.startswith("2 sessions are short")
    assert "nothing would have been folded; sending everything is the cheapest" in text
    assert "\x1b" not in text
    assert "Where the folds" not in text
    assert "1 broken line skipped" in text
    assert "not read: it is not JSON" in text
    assert "newest messages" not in text


def test_unknown_models_are_priced_by_what_is_usual_and_that_is_said(tmp_path):
    (tmp_path / "chat").write_bytes(FILES["OpenAI chat"])
    text = " ".join(said(tmp_path / "chat", "--profile", "balanced").split())
    assert "1 session of no model whose prices are known: counted at $3 in, $15 out" in text
    assert "taken as 128k (--window)" in text
    dear = json.loads(
        said(tmp_path / "chat", "--profile", "balanced", "--prices", "30,150,3,37.5", "--json")
    )
    cheap = json.loads(said(tmp_path / "chat", "--profile", "balanced", "--json"))
    first, second = (one["policies"][0]["cost"] for one in (dear, cheap))
    assert first == pytest.approx(10 * second)


def test_nothing_to_read_is_an_error_that_says_why_for_each(tmp_path):
    (tmp_path / "notes.txt").write_text("Nothing.")
    error = said(tmp_path / "notes.txt", tmp_path / "missing", code=1)
    assert "notes.txt: it is not JSON." in error
    assert "missing: it cannot be read: No such file or directory." in error
    assert "~/.claude/projects" in error


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("--profile", "cheap", "balanced"),
        ("--policy", "cheap", "mask, rolling"),
        ("--prices", "1,2", "four"),
        ("--prices", "1,2,3,nan", "four"),
        ("--prices", "no-such-model", "four"),
    ],
)
def test_wrong_choices_name_the_right_ones(tmp_path, option, value, word):
    (tmp_path / "chat").write_bytes(FILES["OpenAI chat"])
    assert word in said(tmp_path / "chat", option, value, code=2)


def test_only_as_much_as_takes_minutes_is_replayed(tmp_path, monkeypatch):
    monkeypatch.setattr("refold.cli.lab._MAX_MESSAGES", 10)
    for name in ("one", "two", "three"):
        (tmp_path / name).write_bytes(FILES["Claude Code"])
    only = ("--profile", "balanced", "--policy", "batched")
    assert "2 more sessions were found: --all replays them too." in said(tmp_path, *only)
    assert json.loads(said(tmp_path, *only, "--all", "--json"))["unread"] == 0


def test_a_policy_that_fails_says_so_and_spoils_no_other(monkeypatch, of):
    monkeypatch.setattr("refold.lab.measure.baselines", lambda _: {"none": None})
    [outcome] = measured(jobs_for(of.cases, [], ["none"])[0])
    assert outcome.row is None
    assert "TypeError" in outcome.error
    ours = of.of(0, "balanced")
    without = totals(of.cases, [outcome, ours], ["balanced"], ["none"])
    assert (without.everything.row, without.leading.error) == (None, "")
    assert "could not be compared" in finding(without)


def test_processes_find_what_one_process_finds(of, monkeypatch):
    monkeypatch.setattr("refold.lab.measure._WORTH_A_PROCESS", 1)
    monkeypatch.setattr("refold.lab.measure._cores", lambda: 2)
    cases = [of.cases[0]] * 2
    found = {job.session: done for job, done in each_measured(jobs_for(cases, [], ["none"]))}
    assert [one.row.sent for done in found.values() for one in done if one.row] == [
        of.everything.row.sent
    ] * 2
    assert sorted(found) == [0, 1]


@pytest.mark.parametrize("cores", [1, 2])
def test_a_long_session_says_within_how_many_requests_are_replayed(of, monkeypatch, cores):
    monkeypatch.setattr("refold.lab.measure._WORTH_A_PROCESS", 1)
    monkeypatch.setattr("refold.lab.measure._POLL", 0.001)
    monkeypatch.setattr("refold.lab.measure._cores", lambda: cores)
    jobs = jobs_for([of.cases[0]] * 2, [], ["none"])
    shown = []
    for _ in each_measured(jobs, on_requests=shown.append):
        pass
    assert shown[-1] == sum(job.requests for job in jobs) == 2 * of.everything.row.requests
    assert len({*shown}) > len(jobs)


def test_a_terminal_shows_how_many_requests_are_replayed(long_file, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # the rest of a test's output is no terminal
    done = CliRunner().invoke(app, [str(long_file), "--profile", "balanced", "--policy", "ledger"])
    assert re.search(r"Replayed \d of 1 session .*240/240", done.stderr)
    assert "240" not in done.stdout


def test_ascii_terminals_get_ascii(of, long_file):
    shown = BytesIO()
    file = TextIOWrapper(shown, encoding="ascii", errors="strict", write_through=True)
    show(report(of, [read_session_file(long_file)], width=80), Console(file=file, width=80))
    assert b"|---" in shown.getvalue()


def test_prices_and_windows_are_those_of_the_model():
    opus = RecordedMessage(b"{}", model="claude-opus-4-5")
    case = case_of(
        Recording("x", (opus, opus, RecordedMessage(b"{}", model="gpt-5"))), CaseOptions()
    )
    assert (case.model, case.window) == ("claude-opus-4-5", 200_000)
    assert case.prices == Prices(5, 25, 0.5, 6.25)
    assert prices_of("gpt-5") == Prices(1.25, 10, 0.125, 1.25)  # no price for writing: the input's
    small = case_of(Recording("x", ()), CaseOptions(window=10_000))
    assert (small.threshold, small.settings.tail, small.measure.gap) == (8_000, 640, 1_600)
    assert small.adapt(PROFILES["copilot"]) is PROFILES["copilot"]
    # Whether the cache has expired, a replay and its rule must agree on: here it never does.
    never = changed(PROFILES["balanced"], trigger={"cache_seconds": 0})
    assert small.adapt(PROFILES["balanced"]) == never
    given = case_of(Recording("x", ()), CaseOptions(threshold=5_000))
    adapted = given.adapt(PROFILES["balanced"])
    assert adapted.trigger.tokens == 5_000
    assert adapted.fold is PROFILES["balanced"].fold  # a session makes it smaller by itself
    fold = sized(adapted, 100_000)
    assert (given.settings.tail, given.settings.summary) == (fold.keep.amount, fold.ledger_tokens)
    assert given.adapt(PROFILES["copilot"]) is PROFILES["copilot"]


def test_figures_are_short_and_never_better_than_they_are():
    assert [percent(one) for one in (1, 0.999, 0.994, 0)] == ["100%", ">99%", "99%", "0%"]
    assert [tokens(one) for one in (7, 4_321, 98_765, 1_234_567)] == ["7", "4.3k", "99k", "1.2M"]
    assert [dollars(one) for one in (0, 0.0123, 1234.5)] == ["$0.00", "$0.0123", "$1,234.50"]


def test_names_from_files_give_no_orders_to_a_terminal(tmp_path):
    (tmp_path / "evil\x1b[2J.jsonl").write_bytes(lines(*CLAUDE))
    assert "\x1b" not in said(tmp_path, "--profile", "balanced", "--policy", "batched")


def test_the_lab_needs_no_model_library(tmp_path):
    (tmp_path / "chat").write_bytes(FILES["OpenAI chat"])
    script = (
        "import sys\nfor name in ('pydantic_ai', 'prompt_toolkit'): sys.modules[name] = None\n"
        "import typer\nfrom refold.cli.lab import lab\ntyper.run(lab)\n"
    )
    ran = [sys.executable, "-c", script, str(tmp_path / "chat"), "--json"]
    done = subprocess.run(ran, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)["policies"]) == 12


def test_a_job_is_one_profile_or_some_rules():
    case = case_of(Recording("x", ()), CaseOptions())
    assert [job.policies for job in jobs_for([case], [PROFILES["inkeep"]], ["none"])] == [
        ("inkeep",),
        ("none",),
    ]
    assert isinstance(jobs_for([case], [], ["none"])[0], Job)


def test_the_report_is_a_page_too(long_file, tmp_path):
    page = tmp_path / "report.html"
    limits = ("--window", "8000", "--threshold", "6000", "--profile", "balanced")
    odd = tmp_path / "<b>odd.jsonl"
    odd.write_text("{}")
    text = said(long_file, odd, *limits, "--html", page)
    assert f"Written to {page}." in " ".join(text.split())
    html = page.read_text()
    assert "<script" not in html
    assert re.findall(r"(?:src|href)=|https?://(?!www.w3.org)", html) == []
    names = re.findall(r"<title>([^<:]+): [0-9]+% of the cost", html)
    assert {"everything", "balanced", "a summary of names"} <= {*names}
    for name in names:  # each point has a row
        assert re.search(rf'<th scope="row">(\* )?{re.escape(name)}</th>', html)
    assert "<h3><bdi>long</bdi></h3>" in html
    assert 'class="line s1"' in html
    assert "&lt;b&gt;odd.jsonl" in html
    said(long_file, *limits, "--html", page, "--json")
    assert page.read_text().count("<h1>") == 1


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("report.txt", 2, "End it in .html"),
        ("none/report.html", 1, "Create the folder '{folder}/none' first"),
        ("file/report.html", 1, "Part of this path is a file"),
    ],
)
def test_a_page_that_cannot_be_written_is_refused_first(long_file, tmp_path, name, code, words):
    (tmp_path / "file").touch()
    error = said(long_file, "--html", tmp_path / name, code=code)
    assert words.format(folder=tmp_path) in error
    assert str(tmp_path / name) in error
    assert not (tmp_path / name).exists()


def test_baselines_are_named_as_the_table_names_them():
    assert _rules(["a summary of names"]) == [EVERYTHING, "head / ledger / tail"]
