"""The text that an edit will need: which regions a fold shows, and as what."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessions import Quarter

from refold.fold.extractive import extractive_summary
from refold.fold.material import Earlier, Material, Passage
from refold.fold.regions import HEADING, region_block, regions
from refold.fold.replace import render_summary
from refold.fold.summary import parse
from refold.view.profiles import BALANCED
from refold.wire import Shape

PATH = "/repo/src/parser.py"
LINES = [f"    value_{nth} = read_token({nth})  # of the parser" for nth in range(40)]
TEXT = "\n".join(["def parse(source):", *LINES, "", "def close():", "    return None"])
ALL = TEXT.split("\n")
NUMBERED = "\n".join(f"{nth:6}\N{RIGHTWARDS ARROW}{line}" for nth, line in enumerate(ALL, 1))
ASKED = Passage(2, "user", (Shape("prompt", "Change how parser.py reads a token."),))


def call(seq, tool, result="done", **arguments):
    name = f"call_{seq}"
    return (
        Passage(seq, "assistant", (Shape("call", json.dumps(arguments), tool, name),)),
        Passage(seq + 1, "user", (Shape("return", result, tool, name),)),
    )


def patch(*lines):
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


READ = call(4, "Read", NUMBERED, file_path=PATH)


def found(*passages, earlier=(), kept=()):
    return regions(Material((ASKED, *passages), earlier, kept=kept))


def shown(*passages, room=20_000, **more):
    return region_block(found(*passages, **more), Quarter(), room)


def test_what_was_read_before_the_first_edit_is_shown_letter_by_letter():
    block = shown(*READ)
    assert block.startswith(f"## {HEADING}\n### {PATH} (entry 5)\n```\n")
    assert TEXT in block
    assert "\N{RIGHTWARDS ARROW}" not in block


def test_an_edit_is_made_in_what_is_shown():
    edit = call(6, "Edit", file_path=PATH, old_string=LINES[3], new_string="    value_3 = None")
    block = shown(*READ, *edit)
    assert TEXT.replace(LINES[3], "    value_3 = None") in block
    assert "(entry 6)" in block
    failed = call(6, "Edit", "Error: no such text", file_path=PATH, old_string="x", new_string="y")
    assert shown(*READ, *failed) == shown(*READ)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Write", {"file_path": PATH, "content": TEXT}),
        ("create", {"path": PATH, "file_text": TEXT}),
        ("apply_patch", {"input": patch(f"*** Add File: {PATH}", *(f"+{x}" for x in ALL))}),
    ],
)
def test_a_file_that_the_model_wrote_is_known_whole(tool, arguments):
    assert TEXT in shown(*call(4, tool, **arguments))


def test_a_patch_changes_what_was_read():
    hunk = ("@@", f" {LINES[4]}", f"-{LINES[5]}", "+    new = 5")
    change = patch(f"*** Update File: {PATH}", *hunk)
    block = shown(*READ, *call(6, "apply_patch", patch=change))
    assert f"{LINES[4]}\n    new = 5\n{LINES[6]}" in block


def test_a_command_shows_a_file_too():
    output = f"Chunk ID: 1\nWall time: 0 s\nOutput:\n{TEXT}"
    [first, *_] = found(*call(4, "exec_command", output, cmd=f"sed -n '1,80p' {PATH}"))
    assert first.path == PATH
    assert "Chunk" not in first.text
    assert not found(*call(4, "exec_command", TEXT, cmd=f"pytest {PATH}"))


def test_what_a_harness_attached_is_a_file_that_was_read():
    lines = "\n".join(f"{nth}\t{line}" for nth, line in enumerate(TEXT.split("\n"), 1))
    reminder = f"<system-reminder>\n{PATH}\n{lines}\n</system-reminder>\nparser.py, please"
    assert TEXT in shown(Passage(3, "user", (Shape("prompt", reminder),)))
    plain = f"<system-reminder>\n{PATH}\n{TEXT}\n</system-reminder>"
    assert TEXT in shown(Passage(3, "user", (Shape("prompt", plain),)))


def test_a_command_that_shows_several_ranges_of_a_file_shows_it():
    command = f"sed -n '1,20p' {PATH} && sed -n '20,90p' {PATH}"
    edit = call(6, "Edit", file_path=PATH, old_string=LINES[3], new_string="    value_3 = None")
    block = shown(*call(4, "exec_command", TEXT, cmd=command), *edit)
    assert f"{LINES[2]}\n    value_3 = None\n{LINES[4]}" in block


def test_a_command_shows_the_whole_file_where_its_range_is_longer():
    def whole(command):
        return {one.whole for one in found(*call(4, "exec_command", TEXT, cmd=command))}

    assert whole(f"cat {PATH}") == whole(f"sed -n '1,300p' {PATH}") == {True}
    assert True not in whole(f"sed -n '1,{len(ALL)}p' {PATH}")
    assert True not in whole(f"cat {PATH} other.py") | whole(f"cat {PATH} | grep value")


def changes(number, seq=20):
    """Calls that write so many other files."""
    for nth in range(number):
        path = f"/repo/other_{nth}.py"
        yield from call(seq + 2 * nth, "Write", file_path=path, content="x = 1")


def test_after_many_changes_only_lines_near_one_are_shown():
    read = call(
        4, "Read", "\n".join(f"{line} {nth}" for nth, line in enumerate(LINES * 5)), path=PATH
    )
    edit = call(
        10, "Edit", file_path=PATH, old_string=f"{LINES[20]} 100", new_string="    new = 100"
    )
    early, late = found(*read, *edit), found(*read, *edit, *changes(6))
    lines = [line for one in late if one.path == PATH for line in one.text.split("\n")]
    assert sum(len(one.text) for one in early if one.path == PATH) > 2 * sum(map(len, lines))
    assert "    new = 100" in lines
    assert f"{LINES[19]} 99" in lines
    assert f"{LINES[0]} 0" not in lines


def test_what_is_not_touched_for_some_folds_is_left_out():
    def after(folds, *passages):
        earlier = ()
        for _ in range(folds):
            last = extractive_summary(Material((ASKED, *passages), earlier))
            earlier, passages = (Earlier(7, parse(last.as_json()), 6),), ()
        return regions(Material((ASKED,), earlier))

    edit = call(6, "Edit", file_path=PATH, old_string=LINES[3], new_string="    value_3 = None")
    assert after(1, *READ)
    assert not after(2, *READ)
    assert "    value_3 = None" in "".join(one.text for one in after(1, *READ, *edit))
    assert not after(2, *READ, *edit)


def test_what_was_changed_is_known_after_it_was_read_again():
    edit = call(6, "Edit", file_path=PATH, old_string=LINES[3], new_string="    value_3 = None")
    again = call(8, "Read", TEXT.replace(LINES[3], "    value_3 = None"), file_path=PATH)
    assert {one.changed for one in found(*READ, *edit, *again)} == {True, False}


def test_results_that_are_no_files_are_left_out():
    other = call(6, "Read", NUMBERED, file_path="/repo/src/lexer.py")
    assert {region.path for region in found(*READ, *other)} == {PATH, "/repo/src/lexer.py"}
    assert not found(*call(4, "Grep", TEXT, pattern="token", path=PATH))
    assert not found(*call(4, "recall_read", TEXT, path=PATH))
    assert not found(*call(4, "Read", "Error: no such file", file_path=PATH))


def test_what_requests_go_on_showing_is_not_shown_twice():
    later = call(8, "Read", NUMBERED, file_path=PATH)
    assert not found(*READ, kept=later)
    edit = call(8, "Edit", file_path=PATH, old_string=LINES[3], new_string="    value_3 = None")
    assert "    value_3 = None" in shown(*READ, kept=edit)


def test_a_later_fold_knows_what_an_earlier_one_stored():
    first = extractive_summary(Material((ASKED, *READ)))
    again = parse(first.as_json())
    assert again.regions == first.regions
    edit = call(9, "Edit", file_path=PATH, old_string=LINES[30], new_string="    pass")
    block = region_block(regions(Material(edit, (Earlier(7, again, 6),))), Quarter(), 20_000)
    assert TEXT.replace(LINES[30], "    pass") in block
    old = regions(Material((), (Earlier(7, again, 6),)))
    assert all(region.age == 1 for region in old)


@given(st.integers(0, 1_500))
def test_only_so_many_tokens_are_shown_and_in_order(room):
    block = shown(*READ, room=room)
    assert Quarter().text(block) <= room + 1
    own = [line for line in block.split("\n") if line in LINES]
    assert own == sorted(own, key=LINES.index)
    if own and len(own) < len(LINES):
        assert "[…]" in block or own in (LINES[: len(own)], LINES[-len(own) :])


@given(st.text(alphabet="`x\n \r\x0b\u2028#", max_size=60))
def test_a_file_cannot_end_its_quotation(text):
    body = f"parser = 1\n{text}\n{TEXT}"
    block = shown(*call(4, "Write", file_path=PATH, content=body))
    head, fence, *lines = block.removeprefix(f"## {HEADING}\n").split("\n")
    assert head.startswith("### ")
    assert re.fullmatch("`{3,}", fence)
    assert [nth for nth, line in enumerate(lines) if line.strip() == fence] == [len(lines) - 1]


def test_a_fold_shows_them_beside_its_summary():
    summary = extractive_summary(Material((ASKED, *READ)))
    values = BALANCED.fold
    text = render_summary(summary, values, Quarter()).text
    assert TEXT in text
    none = values.model_copy(update={"region_tokens": 0})
    assert HEADING not in render_summary(summary, none, Quarter()).text
