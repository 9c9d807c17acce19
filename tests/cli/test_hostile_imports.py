"""`refold import` of files that somebody else made: an error or a session, and nothing else."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import json
import os
import re
import sys
import threading
from pathlib import Path
from uuid import uuid4

import pytest
from amounts import set_amount
from hypothesis import example, given, settings
from import_mutations import ESCAPES, LINES, mutated_files
from refold_commands import PLAIN, REFOLD, Terminal, quick, terminal
from terminal.provider import Provider

from refold.log.transfer import check_lines
from refold.stores import open_store

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e]")
ERROR = re.compile(r"error\[[a-z-]+\]: [^\n]+\n[^\n]+\n")
FILES = set_amount("REFOLD_IMPORTS", few=12, quick=12, ci=12, nightly=200, thorough=2_000)
"""Files in the fuzz, each read by six commands."""
READERS = [
    ["sessions"],
    ["show", "s"],
    ["explain", "s"],
    ["search", "alpha"],
    ["export", "s", "--as", "html", "-o", "s.html", "--force"],
    ["export", "s", "-o", "again.jsonl", "--force"],
]


def entry(seq, kind, body, **more):
    fields = {"seq": seq, "id": str(uuid4()), "at": 1_760_000_000_000 + seq, "kind": kind}
    return json.dumps({**fields, "version": 1, **more, "body": body})


def file_of(*values, session="s", title=None, **opened):
    """The text of a file with these entries after the opening."""
    opening = {"format": "openai-chat", "profile": "balanced", "title": title, **opened}
    lines = [json.dumps({"refold": 1, "session": session}), entry(1, "session", opening)]
    lines += [entry(seq, *value) for seq, value in enumerate(values, 2)]
    return "\n".join([*lines, json.dumps({"entries": len(lines) - 1}), ""])


def said(text, role="user"):
    return "message", {"role": role, "content": text}


def ended_well(done, allowed=(0, 1)):
    """Whether a command ended as it should: no traceback, nothing that a terminal obeys."""
    assert done.returncode in allowed, done
    if done.returncode == 1:
        assert ERROR.fullmatch(done.stderr), done.stderr
        assert len(done.stderr) < 3_000
    assert not OBEYED.search(done.stderr), done.stderr
    assert not OBEYED.search(done.stdout), done.stdout
    return done.returncode == 0


@settings(max_examples=FILES)
@example(b"".join(LINES))
@example(b"\n".join([LINES[0][:-1], b'{"entries":"\\u001b]0;owned\\u0007"}', b""]))
@example(b"".join([*LINES[:5], LINES[9].replace(b'"artifacts":["', b'"artifacts":["\\u001b[2J')]))
@given(mutated_files())
def test_whatever_a_file_holds_it_is_imported_or_refused(tmp_path_factory, quick, data):
    terminal = Terminal(tmp_path_factory.mktemp("import"), quick)
    name = terminal.write("in.jsonl", data)
    done = terminal.run("import", name, "--as", "s")
    if not ended_well(done):
        assert terminal.files() <= {"in.jsonl"}, "nothing is written of a file that is refused"
        return
    for command in READERS:
        ended_well(terminal.run(*command))
    assert ended_well(terminal.run("import", "again.jsonl", "--as", "again"))


def test_the_file_that_is_mutated_is_right(terminal):
    terminal.write("in.jsonl", b"".join(LINES))
    assert terminal.does("import", "in.jsonl").startswith("Imported session 's': 23 entries")


HOSTILE_LINES = {
    "a count that is no number": '{"entries":"\\u001b]0;owned\\u0007"}',
    "an artifact's hash": entry(2, *said("x"), artifacts=["\x1b[2J" * 9_000]),
    "a kind": entry(2, "\x1b[2J", {}),
    "a scope": entry(2, *said("x"), scope="\x1b[2J"),
    "a key of a body": entry(2, "pin", {"parts": [{"\x1b[2J": 1}] * 9_000}),
    "a note that is none": entry(2, "note", [ESCAPES]),
    "a time": entry(2, *said("x")).replace("1760000000002", "9" * 4_000),
}


@pytest.mark.parametrize("line", HOSTILE_LINES.values(), ids=HOSTILE_LINES)
def test_an_error_quotes_nothing_that_a_terminal_obeys(terminal, line):
    terminal.write("in.jsonl", file_of().replace('{"entries": 1}', line))
    assert not ended_well(terminal.run("import", "in.jsonl"))


def test_what_was_imported_is_shown_without_escapes(terminal):
    call = {"id": ESCAPES, "type": "function", "function": {"name": ESCAPES, "arguments": ESCAPES}}
    message = {"role": "assistant", "content": ESCAPES, "tool_calls": [call]}
    text = file_of(
        said(f"alpha {ESCAPES}"),
        ("message", message),
        ("message", {"role": "tool", "tool_call_id": ESCAPES, "content": f"alpha {ESCAPES}"}),
        ("note", {"text": f"alpha {ESCAPES}"}),
        ("title", {"title": ESCAPES}),
        title=ESCAPES,
    ).replace('"balanced"', json.dumps(ESCAPES))
    terminal.write("in.jsonl", text)
    assert ended_well(terminal.run("import", "in.jsonl"))
    for command in READERS[:4]:
        ended_well(terminal.run(*command))


def test_a_name_leads_to_no_other_place(terminal):
    for name in ("../../etc/passwd", "/etc/passwd", "a/../b", "https://x.example/"):
        terminal.write("in.jsonl", file_of(said("hi"), session=name))
        assert ended_well(terminal.run("import", "in.jsonl"))
    assert terminal.files() == {"in.jsonl", "refold.db"}
    for name in ("a\x00b", "\x1b[2J", "\u202e", "x" * 201):
        terminal.write("in.jsonl", file_of(said("hi"), session=name))
        assert not ended_well(terminal.run("import", "in.jsonl"))


def test_an_existing_session_is_not_written_to(terminal):
    terminal.write("mine.jsonl", file_of(said("mine")))
    terminal.does("import", "mine.jsonl")
    before = terminal.does("export", "s")
    kinds = ("forget", {"span": {"first": 1, "last": 2}}), ("rewind", {"to": 1}), ("clear", {})
    for value in (*kinds, said("theirs")):
        terminal.write("theirs.jsonl", file_of(said("hi"), value))
        what, _ = terminal.fails("import", "theirs.jsonl")
        assert what.startswith("error[session-exists]: ")
    # Nor by a file that begins as the session does: it has every id, and forges what follows.
    lines = before.splitlines()
    forged = [*lines[:-1], entry(3, "rewind", {"to": 1}), '{"entries":3}', ""]
    terminal.write("theirs.jsonl", "\n".join(forged))
    ended_well(terminal.run("import", "theirs.jsonl", "--as", "other"))
    assert terminal.does("export", "s") == before


def test_a_file_chooses_no_tenant(terminal):
    text = file_of(said("hi"), tenant="acme", owner="key-of-somebody")
    text = text.replace('"session": "s"', '"session": "s", "tenant": "acme"')
    terminal.write("in.jsonl", text)
    ended_well(terminal.run("import", "in.jsonl"))
    for tenant in ("acme", "refold.service"):
        assert "No sessions yet" in terminal.run("sessions", "--tenant", tenant).stdout


def test_what_a_session_names_is_not_fetched(terminal):
    """No file, no address: not in pictures, and not of the model that a note says has answered."""
    server = Provider(otherwise="I am somebody else's.")
    server.start()
    try:
        answered = {"model": "local:scripted", "address": server.url}
        pictures = [
            {"url": f"{server.url}/picture.png", "kind": "image-url"},
            {"url": "file:///etc/hostname", "kind": "image-url"},
        ]
        asked = {"part_kind": "user-prompt", "content": ["Where is alpha?", *pictures]}
        text = file_of(
            ("message", {"kind": "request", "parts": [asked]}),
            ("message", {"kind": "response", "parts": [{"part_kind": "text", "content": "Here."}]}),
            ("note", {"text": "Answered.", "data": {"answered_by": answered}}),
            format="pydantic-ai",
        )
        terminal.write("in.jsonl", text)
        assert ended_well(terminal.run("import", "in.jsonl"))
        for command in READERS:
            ended_well(terminal.run(*command))
        asked = terminal.run("chat", "--resume", "s", "-p", "My secret is 17.")
        assert not ended_well(asked)
        assert server.url in asked.stderr
        assert "--base-url" in asked.stderr
        assert not server.received
        named = ("--base-url", server.url, "-m", "local")
        assert terminal.run("chat", "mine", *named, "-p", "Hi.").returncode == 0
        assert server.received, "the server answers whoever names it"
        assert terminal.run("chat", "--resume", "s", "-p", "Hi.").returncode == 0
    finally:
        server.stop()


def test_a_line_without_an_end_is_refused_in_bounded_memory(terminal):
    """/dev/zero, a link to it, and a pipe that never ends."""
    (terminal.folder / "link.jsonl").symlink_to("/dev/zero")

    # 2 GB of addresses, and files of 64 MB: a copy of such a pipe would end by a signal.
    bounded = ["sh", "-c", 'ulimit -v 2097152; ulimit -f 131072; exec "$0" "$@"', *REFOLD]
    for source in ("/dev/zero", "link.jsonl", "-"):
        with Path("/dev/zero").open("rb") as zero:  # an endless standard input
            done = terminal.run("import", source, command=bounded, stdin=zero)
        assert not ended_well(done)
        assert "is not the start of an exported session" in done.stderr
    assert terminal.files() == {"link.jsonl"}


def test_a_pipe_is_read_no_further_than_to_its_first_error(terminal):
    pipe = terminal.folder / "pipe"
    os.mkfifo(pipe)
    written = 0

    def endless():
        nonlocal written
        header, more = b'{"refold":1,"session":"s"}\n', b'{"no":"entry"}\n' * 5_000
        try:
            with pipe.open("wb", buffering=0) as file:
                written += file.write(header)
                for _ in range(10_000):
                    written += file.write(more)
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=endless)
    writer.start()
    done = terminal.run("import", str(pipe))
    writer.join(60)
    assert not ended_well(done)
    assert "Line 2 of the file" in done.stderr
    assert written < 2_000_000


def test_a_pipe_that_is_right_is_imported(terminal):
    text = b"".join(LINES).decode()
    assert "23 entries" in terminal.does("import", "-", given=text)


def steps_of(text):
    """How many Python function calls it takes to check a file."""
    calls = 0

    def count(*_):
        nonlocal calls
        calls += 1

    async def lines():
        for line in text.splitlines(keepends=True):
            yield line

    async def check():
        sys.setprofile(count)
        try:
            await check_lines(lines())
        finally:
            sys.setprofile(None)

    asyncio.run(check())
    return calls


def part(index):
    return {"seq": 2, "index": index}


BOMBS = {
    "rewinds to one place": lambda n: [("rewind", {"to": 2})] * n,
    "rewinds to the newest": lambda n: [("rewind", {"to": 2 + i}) for i in range(n)],
    "clears": lambda n: [("clear", {})] * n,
    "pins": lambda n: [("pin", {"parts": [part(i)]}) for i in range(n)],
    "pins and rewinds": lambda n: [
        ("pin", {"parts": [part(i)]}) if i % 2 else ("rewind", {"to": 2}) for i in range(n)
    ],
}


@pytest.mark.parametrize("entries", BOMBS.values(), ids=BOMBS)
def test_the_time_an_import_takes_is_by_its_size(entries):
    small, large = 100, 800
    few = steps_of(file_of(said("hi"), *entries(small)))
    many = steps_of(file_of(said("hi"), *entries(large)))
    assert many / few < 2 * large / small


@pytest.mark.parametrize(
    ("what", "values"),
    [
        (
            "folds that have not ended",
            [
                ("fold.start", {"fold": str(uuid4()), "spans": [{"first": 2, "last": 2}]})
                for _ in range(1_100)
            ],
        ),
        ("pinned parts", [("pin", {"parts": [part(i) for i in range(5_001)]})]),
    ],
)
def test_a_session_that_would_slow_everything_down_is_refused(terminal, what, values):
    for _, body in values:
        if "spans" in body:
            body["trigger"] = "tokens"
    terminal.write("in.jsonl", file_of(said("hi"), *values))
    done = terminal.run("import", "in.jsonl")
    assert not ended_well(done)
    assert what in done.stderr
