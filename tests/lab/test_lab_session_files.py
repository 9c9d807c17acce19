"""Sessions are found in any file, by what is in it; no file brings the lab down."""

import asyncio
import gzip
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from amounts import set_amount
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lab_files import CHAT, CLAUDE, CODEX, FILES, GEMINI_FILE, PI, claude, claude_said, lines
from project_paths import DATA

from refold.lab import RecordedMessage, Recording
from refold.lab.session_files import read_session_file, recordings
from refold.stores import MemoryStore
from refold.transcripts import messages
from refold.transcripts.log_import import import_recording
from refold.transcripts.programs import read_session
from refold.transcripts.recording import newest_lines, trimmed


def look(tmp_path, data):
    path = tmp_path / "some"  # a name that tells nothing
    path.write_bytes(data)
    return read_session_file(path)


@pytest.mark.parametrize("kind", FILES)
def test_the_format_is_found_by_looking(tmp_path, kind):
    found = look(tmp_path, FILES[kind])
    assert found.format
    assert found.format in kind
    assert (len(found.recordings), found.broken, found.why) == (1, 0, "")
    assert found.messages >= 2


@pytest.mark.skipif(not DATA.exists(), reason="set REFOLD_DATA to the folder of recordings")
def test_real_files_of_claude_code_are_read():
    found = {Path(one.path).name: one for one in recordings([DATA / "claude_code"])}
    assert {one.format for one in found.values()} == {"Claude Code"}
    assert found["edge_cases.jsonl"].broken == 3
    assert found["representative_messages.jsonl"].messages == 11


def test_broken_lines_are_counted_and_passed_over(tmp_path):
    whole = FILES["Claude Code"]
    good = look(tmp_path, whole)
    cut = whole[:-20]  # the last line, as a crash leaves it
    torn = b'{"type": "us\n[1, 2]\nnull\n' + whole + b'{"a": 1e999}\n' + b"\0" * 4096
    found = look(tmp_path, torn)
    assert (found.format, found.messages, found.broken) == ("Claude Code", good.messages, 3)
    assert (look(tmp_path, cut).messages, look(tmp_path, cut).broken) == (good.messages - 1, 1)


def test_numbers_that_json_cannot_hold_are_no_numbers(tmp_path):
    data = FILES["pi"].replace(b'{"path": "a.py"}', b'{"size": 1e999, "in": [-1e999, 1.5]}')
    [recording] = look(tmp_path, data).recordings
    call = json.loads(recording.payloads[1])["parts"][1]
    assert call["args"] == {"size": None, "in": [None, 1.5]}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32", "latin-1"])
def test_text_in_another_encoding_is_read(tmp_path, encoding):
    said = json.dumps("Grüße"), '"Grüße"'
    text = FILES["pi"].decode().replace('"Fix it."', said[1])
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    found = look(tmp_path, (mark + text).encode(encoding))
    assert (found.format, found.broken, found.messages) == ("pi", 0, 3)
    assert "Grüße" in found.recordings[0].payloads[0].decode()


@pytest.mark.parametrize("kind", FILES)
def test_a_file_compressed_with_gzip_is_read_like_the_file(tmp_path, kind):
    (tmp_path / "it.jsonl").write_bytes(FILES[kind])
    (tmp_path / "it.jsonl.gz").write_bytes(gzip.compress(FILES[kind]))
    plain, packed = (read_session_file(tmp_path / f"it.jsonl{end}") for end in ("", ".gz"))
    assert (packed.format, packed.recordings) == (plain.format, plain.recordings)
    assert read_session(tmp_path / "it.jsonl.gz").recording == (
        read_session(tmp_path / "it.jsonl").recording
    )


def test_a_compressed_file_that_is_damaged_says_why_or_gives_what_it_has(tmp_path):
    packed = gzip.compress(FILES["Claude Code"] * 200)
    found = look(tmp_path, packed[: len(packed) // 2])  # its program may still be writing it
    assert (found.format, len(found.recordings)) == ("Claude Code", 1)
    for data in (packed[:300] + b"\0" * 100 + packed[400:], packed[:-8] + b"\0" * 8, packed[:3]):
        found = look(tmp_path, data)
        assert found.why.startswith(("it cannot be read: ", "it is empty"))


def test_what_a_compressed_file_unpacks_to_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("refold.transcripts.recording.MAX_UNPACKED", 8 * 2**20)
    found = look(tmp_path, gzip.compress(FILES["Claude Code"] + b"x" * 2**24))
    assert "unpacks to more than" in found.why


NOT_SESSIONS = {
    "empty": b"",
    "blank": b" \n\0\n",
    "binary": bytes(range(256)) * 50,
    "text": b"Dear diary,\n",
    "number": b"3",
    "list": b"[]",
    "object": b'{"a": 1}',
    "objects": b'{"a": 1}\n{"b": 2}\n',
    "brackets": b"[" * 10_000,
    "braces": b'{"type":' * 10_000,
    "deep lines": (b'{"type":"user","uuid":"u","message":' + b"[" * 10_000 + b"\n") * 3,
    "no answer": lines(CLAUDE[1]),
    "settings": b'{"messages": "none", "history": 3, "items": {}}',
}


@pytest.mark.parametrize("kind", NOT_SESSIONS)
def test_what_is_no_session_says_why(tmp_path, kind):
    found = look(tmp_path, NOT_SESSIONS[kind])
    assert found.recordings == ()
    assert found.why


def test_what_cannot_be_opened_says_why(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("missing", "pipe", "loop", "a\0b"):
        assert read_session_file(tmp_path / name).why
    (tmp_path / "folder").mkdir()
    [nothing] = recordings([tmp_path / "folder"])
    assert "folder" in nothing.why


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_says_why(tmp_path):
    closed = tmp_path / "closed"
    closed.write_bytes(FILES["pi"])
    closed.chmod(0)
    assert "Permission" in read_session_file(closed).why


def test_folders_are_searched_from_the_newest_file_on(tmp_path):
    deep = tmp_path / "projects" / "mine"
    deep.mkdir(parents=True)
    for age, name in enumerate(("new.jsonl", "old.jsonl")):
        (deep / name).write_bytes(FILES["Claude Code"])
        os.utime(deep / name, (10_000 - age, 10_000 - age))
    (deep / "picture.png").write_bytes(bytes(range(256)))
    (deep / "again").symlink_to(tmp_path)
    found = list(recordings([tmp_path, deep / "picture.png"]))
    assert [Path(one.path).name for one in found] == ["new.jsonl", "old.jsonl", "picture.png"]
    assert found[-1].why


def test_the_newest_lines_are_kept_and_long_ones_passed_over(tmp_path):
    path = tmp_path / "some"
    path.write_bytes(b"\n".join([b"one", b"x" * 3_000_000, b"", b"two", b"three", b"y" * 900]))
    found = newest_lines(path, max_line=800, max_size=8)
    assert (found.newest, found.long, found.older) == ((b"two", b"three"), 2, 1)
    assert newest_lines(path, max_line=900).newest[-1] == b"y" * 900


def test_a_long_session_is_cut_to_its_newest_part_and_its_pairs_stay_whole():
    made = []
    for turn in range(10):
        made += [
            messages.request([messages.user_prompt(f"ask {turn}")]),
            messages.response([messages.tool_call("read", f"c{turn}", {})]),
            messages.request([messages.tool_return("read", f"c{turn}", "x" * 100)]),
        ]
    recording = Recording("made", tuple(map(RecordedMessage, made)))
    assert trimmed(recording) is recording
    short = trimmed(recording, messages=10)
    assert list(short.payloads) == made[-9:]
    assert list(trimmed(recording, size=500).payloads) == made[-3:]
    late = [made[0], made[1], made[3], made[2], made[4]]
    cut = trimmed(Recording("late", tuple(map(RecordedMessage, late))), messages=3)
    assert list(cut.payloads) == [made[3], made[4]]


# --- whatever is in a file

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
VALUES = st.sampled_from(["", "lots", 10**30, -1, 1e300, None, True, [], {}, [[]], [{}]]) | JSON
FEW = settings(
    max_examples=set_amount("REFOLD_FUZZ", few=60, quick=60, ci=60, nightly=600, thorough=6_000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
RECORDS = {
    "Claude Code": [*CLAUDE],
    "Codex": [*CODEX],
    "Gemini CLI": [GEMINI_FILE],
    "OpenAI chat": [[*CHAT]],
    "pi": [*PI],
}


def places(value, path=()):
    """Every place in a value."""
    yield path
    if not isinstance(value, dict | list | tuple):
        return
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        yield from places(one, (*path, key))


def changed(value, path, new):
    if not path:
        return new
    key, *rest = path
    copy = {**value} if isinstance(value, dict) else [*value]
    copy[key] = changed(copy[key], rest, new)
    return copy


def sound(found):
    """What was found can be replayed: it is messages, and every result has its call before it."""
    for recording in found.recordings:
        for one in recording.messages:
            message = json.loads(one.payload)
            assert message["kind"] in ("request", "response")
            assert one.at is None or 0 < one.at < 5_000_000_000_000
    assert bool(found.recordings) != bool(found.why)


def importable(path):
    """The file can be imported into a log, once; or it says why not."""
    file = read_session(path)
    if file.recording is None:
        assert file.why
        return
    log = MemoryStore().log()
    first = asyncio.run(import_recording(log, file.recording))
    assert first.messages == len(file.recording.messages)
    assert asyncio.run(import_recording(log, file.recording)).messages == 0


@FEW
@given(data=st.data(), kind=st.sampled_from([*FILES]))
def test_any_bytes_changed(tmp_path, data, kind):
    whole = bytearray(FILES[kind])
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(whole)))
        end = data.draw(st.integers(at, min(len(whole), at + 40)))
        whole[at:end] = data.draw(st.binary(max_size=12))
    end = data.draw(st.just(len(whole)) | st.integers(0, len(whole)))
    sound(look(tmp_path, bytes(whole[:end])))
    importable(tmp_path / "some")


@FEW
@given(data=st.data(), kind=st.sampled_from([*RECORDS]))
def test_any_value_changed(tmp_path, data, kind):
    records = [*RECORDS[kind]]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(records) - 1))
        path = data.draw(st.sampled_from([*places(records[at])]))
        records[at] = changed(records[at], path, data.draw(VALUES))
    sound(look(tmp_path, lines(*records)))
    importable(tmp_path / "some")


LIMITED = """
import sys
from pathlib import Path
from refold.lab.session_files import read_session_file
found = read_session_file(Path(sys.argv[1]))
print(found.format, len(found.recordings), found.messages, found.broken, found.older, found.why)
"""


@pytest.mark.parametrize("opened", [open, gzip.open])
@pytest.mark.parametrize("shape", ["lines", "one line"])
def test_a_huge_file_takes_little_memory(tmp_path, shape, opened):
    """REFOLD_HUGE is its size in megabytes: 1024 for the whole of it."""
    size = int(os.environ.get("REFOLD_HUGE", "96")) * 2**20
    path = tmp_path / "huge.jsonl"
    text = {"type": "text", "text": "word " * 4_000}
    with opened(path, "wb") as file:
        number = 0
        if shape == "one line":
            file.write(lines(*CLAUDE) + b'{"type":"user","uuid":"u","text":"')
        while file.tell() < size:
            number += 1
            turn = (
                b"x" * 2**20
                if shape == "one line"
                else lines(
                    claude("user", f"u{number}", None, f"Go {number}."),
                    claude_said(f"a{number}", f"u{number}", f"m{number}", text),
                )
            )
            file.write(turn)
    limit = 700 * 2**20
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    name, made, count, kept, broken, older = done.stdout.split()[:6]
    assert (f"{name} {made}", int(count)) == ("Claude Code", 1)
    if shape == "lines":
        assert 500 < int(kept) <= 6_000
        assert (int(broken), int(older) > 0) == (0, True)
    else:
        assert (int(kept), int(broken), int(older)) == (9, 1, 0)


PLANTED = "import pathlib; pathlib.Path('RAN').write_text('ran')\nraise SystemExit\n"
LIBRARY = """
import sys
from pathlib import Path
sys.path.remove("")
from refold.lab.measure import each_measured, jobs_for
from refold.lab.report import CaseOptions, case_of
from refold.lab.session_files import recordings
cases = [case_of(file.recordings[0], CaseOptions()) for file in recordings([Path("a.jsonl")])]
sys.path.insert(0, "")
for job, outcomes in each_measured(jobs_for(cases * 2, [], ["none"])):
    assert not outcomes[0].error
"""


@pytest.mark.parametrize(
    "command", [("-m", "refold.cli", "lab", "a.jsonl"), ("-c", LIBRARY)], ids=["command", "library"]
)
def test_processes_of_a_replay_import_nothing_from_the_working_directory(tmp_path, command):
    turns = [{"role": "user", "content": "Again."}, {"role": "assistant", "content": "Done."}] * 201
    (tmp_path / "a.jsonl").write_text(json.dumps(turns))
    for name in ("select.py", "asyncio.py"):
        (tmp_path / name).write_text(PLANTED)
    environment = {name: os.environ[name] for name in os.environ if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert not (tmp_path / "RAN").exists()
    assert done.returncode == 0, done.stderr.decode()
