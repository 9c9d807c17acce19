"""The published figures: of listed recordings, and equal on every page to what was measured."""

import gzip
import re
from hashlib import sha256
from io import BytesIO

import figures
import pytest
from figures import COSTS, COUNTS, LABELS, Measured, Recording
from project_paths import DATA

from refold.lab.measure import jobs_for
from refold.lab.measure import measured as replayed
from refold.lab.metrics import DEFAULT_PRICES
from refold.lab.report import CaseOptions, case_of
from refold.lab.session_files import recordings
from refold.view.profiles import PROFILES

MARKS = re.compile(r"<!-- figure: (.+?) -->(.+?)<!-- / -->")


def measured(session, policy, cost, found):
    values: dict[str, float] = dict.fromkeys(COSTS, cost)
    values |= dict.fromkeys(COUNTS, 10.0) | {"names": found, "refused": 0.0}
    return Measured(session, "pi", policy, values)


def some_rows():
    of = {"none": (4.0, 10.0), "balanced": (1.0, 9.0)}
    return [
        measured(session, policy, *of.get(policy, (2.0, 5.0)))
        for session in ("a", "b")
        for policy in LABELS
    ]


def test_pages_quote_what_was_measured():
    assert figures.MEASURED.exists(), "make figures DATA=…"
    assert figures.outdated(write=False) == []


def test_each_quotation_names_a_figure_that_exists():
    on = figures.sets(some_rows())
    for page in figures.pages():
        text = page.read_text(encoding="utf-8")
        again = figures.published(text, on | {"held out": on["all"]})
        assert [key for key, _ in MARKS.findall(again)] == [key for key, _ in MARKS.findall(text)]
        assert figures.published(again, on | {"held out": on["all"]}) == again


def test_figures_are_pooled_with_their_intervals():
    on = figures.sets(some_rows())
    page = "<!-- figure: balanced, cost -->?<!-- / --> <!-- figure: balanced, names range -->?"
    page = figures.published(f"{page}<!-- / -->", on)
    assert [text for _, text in MARKS.findall(page)] == ["25%", "90% to 90%"]
    table = figures.published("<!-- figures: comparison -->\n<!-- end of figures -->", on)
    assert "| head and tail only | 50% (50 to 50) | 50% | 50% (50 to 50) |" in table
    assert "Refold (balanced)" in figures.picture(on["all"])


def test_a_session_that_lacks_a_policy_is_not_counted():
    rows = [row for row in some_rows() if (row.session, row.policy) != ("b", "copilot")]
    assert len(figures.sets(rows)["all"]) == 1


def test_every_recording_is_listed_with_its_origin():
    listed = figures.sources()
    assert len(listed) == 30
    assert len({source.sha256 for source in listed}) == 30
    for source in listed:
        assert re.fullmatch(r"[0-9a-f]{40}", source.commit)
        assert re.fullmatch(r"[0-9a-f]{64}", source.sha256)
        assert source.license in {"MIT", "Apache-2.0"}
        assert source.address.endswith(f"{source.commit}/{source.path}")


def test_a_recording_with_other_content_is_refused(tmp_path):
    source = Recording("a.jsonl", "o/r", "c", "p", "MIT", sha256(b"right").hexdigest())
    with pytest.raises(SystemExit, match="has no"):
        figures.content_of(source, tmp_path)
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "a.jsonl.gz").write_bytes(gzip.compress(b"right"))
    assert figures.content_of(source, tmp_path) == b"right"
    (tmp_path / "a.jsonl").write_bytes(b"wrong")
    with pytest.raises(SystemExit, match="SHA-256"):
        figures.content_of(source, tmp_path)


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """Two recordings that are listed, and an empty folder for them."""
    found = [
        Recording(f"{name}.jsonl", "o/r", "c", "p", "MIT", sha256(name.encode()).hexdigest())
        for name in ("a", "b")
    ]
    monkeypatch.setattr(figures, "sources", lambda: found)
    (tmp_path / "a.jsonl").write_bytes(b"a")
    return tmp_path


def test_a_copy_is_verified_without_a_network(listed, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["figures.py", "verify", str(listed)])
    with pytest.raises(SystemExit, match=r"has no b\.jsonl"):
        figures.main()
    (listed / "b.jsonl.gz").write_bytes(gzip.compress(b"b"))
    assert figures.main() == 0
    assert capsys.readouterr().out.startswith("2 recordings, 2 bytes: each has the SHA-256")


def test_a_download_checks_hashes_and_says_what_to_do_without_a_network(listed, monkeypatch):
    asked, answers = [], [BytesIO(b"b"), OSError("no network")]

    def urlopen(address):
        asked.append(address)
        if isinstance(answer := answers.pop(0), OSError):
            raise answer
        return answer

    monkeypatch.setattr(figures.urllib.request, "urlopen", urlopen)
    figures.fetch(listed)
    assert asked == ["https://raw.githubusercontent.com/o/r/c/p"]
    assert (listed / "b.jsonl").read_bytes() == b"b"
    (listed / "a.jsonl").unlink()
    with pytest.raises(SystemExit, match="make figures DATA=FOLDER"):
        figures.fetch(listed)


@pytest.mark.skipif(not DATA.is_dir(), reason="no recorded sessions beside the project")
def test_a_recording_still_gives_the_figures_that_were_measured(tmp_path):
    [source] = [one for one in figures.sources() if one.name == "agentv_019ed917.jsonl"]
    (tmp_path / source.name).write_bytes(figures.content_of(source, DATA))
    [file] = recordings([tmp_path / source.name])
    case = case_of(file.recordings[0], CaseOptions(figures.WINDOW, None, DEFAULT_PRICES))
    jobs = jobs_for([case], [PROFILES["balanced"]], ["none", "head / ledger / tail"])
    made = [figures._measured(case, one) for job in jobs for one in replayed(job)]
    published = {row.policy: row for row in figures.rows() if row.session == made[0].session}
    for row in made:
        assert row.values == pytest.approx(published[row.policy].values, rel=1e-4), row.policy
