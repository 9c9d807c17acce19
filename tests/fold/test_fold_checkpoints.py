"""Checkpoints: the folds of a session as files that people read."""

from uuid import UUID, uuid4

import pytest
from folding import Kept
from hypothesis import given
from hypothesis import strategies as st
from shown import turn, used

from refold.errors import InvalidInput
from refold.fold.checkpoints import (
    EMPTY,
    Checkpoint,
    Workspace,
    checkpoints,
    index,
    is_ours,
    listing,
    slug,
    workspace,
)
from refold.fold.undo import undo_fold, unfold_span
from refold.log import Cleared, FoldCompleted, FoldStarted, Rewound, Span


def turns(*numbers):
    for nth in numbers:
        step = used(f"c{nth}", "read", f"content of part_{nth}.py", path=f"part_{nth}.py")
        yield from turn(f"Please read part_{nth}.py.", step, reply=f"Read part_{nth}.py.")


async def folded_three_times():
    kept = await Kept.of(*turns(0, 1, 2))
    folds = []
    for nth in range(3, 6):
        folds.append(await kept.fold())
        await kept.say(*turns(nth))
    return kept, folds


def files(folder):
    return {
        str(one.relative_to(folder)): one.read_text(encoding="utf-8")
        for one in sorted(folder.rglob("*"))
        if one.is_file()
    }


@pytest.mark.req("R104")
async def test_each_fold_is_a_checkpoint_also_beneath_others():
    kept, folds = await folded_three_times()
    assert len((await kept.outline()).folds) == 1
    found = await checkpoints(kept.log, "s")
    assert [one.fold for one in found] == folds
    assert [one.number for one in found] == [1, 2, 3]
    assert [one.title for one in found] == [f"Please read part_{nth}.py." for nth in (1, 2, 3)]
    assert [one.name for one in found] == [
        "001-please-read-part-1-py.md",
        "002-please-read-part-2-py.md",
        "003-please-read-part-3-py.md",
    ]
    assert found[0].messages < found[1].messages < found[2].messages
    assert 0 < found[0].tokens < found[1].tokens
    assert "Please read part_1.py." in found[0].text


@pytest.mark.req("R104")
async def test_the_files_hold_the_summaries_an_index_and_their_count(tmp_path):
    kept, _ = await folded_three_times()
    found = await checkpoints(kept.log, "s")
    folder = Workspace(tmp_path / "new")
    folder.align(found)
    written = files(tmp_path / "new")
    names = [f"checkpoints/{one.name}" for one in found]
    assert sorted(written) == sorted([*names, "checkpoints/index.md", "workspace.yaml"])
    assert folder.path_of(found[1]) == tmp_path / "new" / names[1]
    for name, one in zip(names, found, strict=True):
        assert one.text in written[name]
        assert f"\n# {one.number}. Please read part" in written[name]
    lines = written["checkpoints/index.md"].splitlines()
    first = found[0]
    row = f"| 1 | [Please read part\\_1.py.]({first.name}) | {first.day} | {first.messages} |"
    assert lines[5].startswith(row)
    assert written["workspace.yaml"] == "summary_count: 3\n"


@pytest.mark.req("R104")
async def test_checkpoints_come_first_then_the_index_then_the_count(tmp_path, monkeypatch):
    kept, _ = await folded_three_times()
    order = []

    def written(path, content):
        order.append(path.name)
        path.write_bytes(content)

    monkeypatch.setattr("refold.fold.checkpoints._write", written)
    Workspace(tmp_path).align(await checkpoints(kept.log, "s"))
    assert [name[:3] for name in order] == ["001", "002", "003", "ind", "wor"]


@pytest.mark.req("R105")
async def test_after_a_rewind_the_files_say_what_the_log_says(tmp_path):
    kept, folds = await folded_three_times()
    folder = Workspace(tmp_path)
    all_three = await checkpoints(kept.log, "s")
    folder.align(all_three)
    await kept.append(Rewound(all_three[1].seq))
    left = await checkpoints(kept.log, "s")
    assert [one.fold for one in left] == folds[:2]
    folder.align(left)
    names = sorted(one.name for one in (tmp_path / "checkpoints").iterdir())
    assert names == [left[0].name, left[1].name, "index.md"]
    assert all_three[2].name not in files(tmp_path)["checkpoints/index.md"]
    assert files(tmp_path)["workspace.yaml"] == "summary_count: 2\n"


@pytest.mark.req("R105")
async def test_a_fold_taken_back_and_a_cleared_view_take_their_files_along(tmp_path):
    kept, folds = await folded_three_times()
    folder = Workspace(tmp_path)
    folder.align(await checkpoints(kept.log, "s"))
    await kept.append(*undo_fold(await kept.outline()))
    left = await checkpoints(kept.log, "s")
    assert [one.fold for one in left] == folds[:2]
    folder.align(left)
    assert files(tmp_path)["workspace.yaml"] == "summary_count: 2\n"
    await kept.append(Cleared())
    folder.align(await checkpoints(kept.log, "s"))
    assert sorted(files(tmp_path)) == ["checkpoints/index.md", "workspace.yaml"]
    assert files(tmp_path)["workspace.yaml"] == "summary_count: 0\n"


@pytest.mark.req("R105")
async def test_a_fold_opened_in_part_goes_on_as_the_checkpoint_it_was():
    kept = await Kept.of(*turns(*range(6)))
    await kept.fold(spans=(Span(6, 9),))
    await kept.fold(spans=(Span(10, 13),))
    before = await checkpoints(kept.log, "s")
    for seq in (7, 8):
        span = Span(seq, seq)
        await kept.append(*await unfold_span(kept.log, "s", await kept.outline(), span, uuid4))
    after = await checkpoints(kept.log, "s")
    assert [(one.number, one.title, one.at, one.text) for one in after] == [
        (one.number, one.title, one.at, one.text) for one in before
    ]
    assert after[1] == before[1]
    assert after[0].fold != before[0].fold
    await kept.append(
        *await unfold_span(kept.log, "s", await kept.outline(), Span(2, 9), uuid4)
    )  # the rest
    assert [one.fold for one in await checkpoints(kept.log, "s")] == [before[1].fold]


async def test_the_same_once_more_writes_nothing(tmp_path, monkeypatch):
    kept, _ = await folded_three_times()
    found = await checkpoints(kept.log, "s")
    folder = Workspace(tmp_path)
    folder.align(found)

    def fail(*_):
        raise AssertionError

    monkeypatch.setattr("pathlib.Path.replace", fail)
    monkeypatch.setattr("pathlib.Path.mkdir", lambda *_, **__: None)
    folder.align(found)


async def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    kept, _ = await folded_three_times()
    found = await checkpoints(kept.log, "s")
    folder = Workspace(tmp_path)
    folder.align(found[:1])
    before = files(tmp_path)

    def full(_):
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        folder.align(found)
    assert files(tmp_path) == before


async def test_files_of_others_are_left_alone(tmp_path):
    kept, _ = await folded_three_times()
    found = await checkpoints(kept.log, "s")
    (tmp_path / "checkpoints").mkdir()
    others = {
        "checkpoints/009-mine.md": "# My own\n",
        "checkpoints/notes.md": found[0].markdown(),
        "workspace.yaml": "name: mine\r\nsummary_count: 7  # how many\r\nlist:\r\n  - a",
    }
    for name, text in others.items():
        (tmp_path / name).write_bytes(text.encode())
    folder = Workspace(tmp_path)
    folder.align(found)
    folder.align([])
    assert (tmp_path / "checkpoints/009-mine.md").read_text() == "# My own\n"
    assert (tmp_path / "checkpoints/notes.md").exists()
    assert (tmp_path / "workspace.yaml").read_bytes() == (
        b"name: mine\r\nsummary_count: 0  # how many\r\nlist:\r\n  - a"
    )


@pytest.mark.parametrize("name", ["001-please-read-part-1-py.md", "index.md"])
async def test_a_file_of_someone_else_in_the_way_is_not_overwritten(tmp_path, name):
    kept, _ = await folded_three_times()
    path = tmp_path / "checkpoints" / name
    path.parent.mkdir()
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(InvalidInput, match="not written by Refold"):
        Workspace(tmp_path).align(await checkpoints(kept.log, "s"))
    assert files(tmp_path) == {f"checkpoints/{name}": "mine"}


@pytest.mark.req("R106")
async def test_a_list_of_none_says_when_checkpoints_are_created(tmp_path):
    kept = await Kept.of(*turns(0))
    found = await checkpoints(kept.log, "s")
    assert found == []
    assert "Checkpoints are created when context is compacted." in listing(found)
    Workspace(tmp_path).align(found)
    assert EMPTY in files(tmp_path)["checkpoints/index.md"]


@pytest.mark.req("R106")
async def test_a_list_names_each_checkpoint():
    kept, _ = await folded_three_times()
    text = listing(await checkpoints(kept.log, "s"))
    assert [line.split(" | ")[1] for line in text.splitlines()[2:]] == [
        f"Please read part\\_{nth}.py." for nth in (1, 2, 3)
    ]
    assert ".md" not in text


@pytest.mark.parametrize("summary", ["They talked.", {"text": "They talked."}, {"odd": [1]}, None])
async def test_a_fold_made_by_hand_is_a_checkpoint_with_a_number_for_a_title(summary):
    kept = await Kept.of(*turns(0, 1))
    fold = uuid4()
    await kept.append(FoldStarted(fold, (Span(4, 6),), "by hand"))
    await kept.append(FoldCompleted(fold, (Span(4, 6),), summary))
    (one,) = await checkpoints(kept.log, "s")
    assert (one.fold, one.title, one.name) == (fold, "Checkpoint 1", "001-checkpoint-1.md")
    said = isinstance(summary, str) or (summary and "text" in summary)
    assert one.text == ("They talked." if said else "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"summary_count: 3\n"),
        (b"a: 1", b"a: 1\nsummary_count: 3\n"),
        (b"a: 1\r\n", b"a: 1\r\nsummary_count: 3\r\n"),
        (b"summary_count:\nb: 2\n", b"summary_count: 3\nb: 2\n"),
        (b'"summary_count" : 12 # so many\n', b'"summary_count" : 3 # so many\n'),
        (b"in:\n  summary_count: 9\n", b"in:\n  summary_count: 9\nsummary_count: 3\n"),
        (b"x_summary_count: 9\n", b"x_summary_count: 9\nsummary_count: 3\n"),
        (b"\xff\xfe: 1\n", b"\xff\xfe: 1\nsummary_count: 3\n"),
    ],
)
@pytest.mark.req("R104")
def test_only_the_count_of_a_workspace_file_is_touched(before, after):
    assert workspace(before, 3) == after
    assert workspace(after, 3) == after


@given(st.text(max_size=200), st.integers(1, 5_000))
def test_a_name_is_safe_on_every_file_system(title, number):
    one = Checkpoint(number, title, UUID(int=1), 2, 0, "text")
    assert is_ours(one.name, one.markdown())
    assert len(one.name) <= 50
    assert one.name.startswith(f"{number:03d}-")


def test_a_title_is_shown_as_it_was_written():
    one = Checkpoint(1, "a | b [c](d) *e*", UUID(int=1), 2, 0, "text")
    (row,) = index([one]).splitlines()[5:]
    assert row.startswith(r"| 1 | [a \| b \[c\](d) \*e\*](001-a-b-c-d-e.md) |")
    assert slug("価格表") == "checkpoint"
    assert slug("Zürich, naïve!") == "zurich-naive"
