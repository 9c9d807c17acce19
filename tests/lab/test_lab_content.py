"""What a model used again, and whether it was shown it: by definitions that no fold uses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.fold.identifiers import identifiers
from refold.lab import Reader, RecordedMessage, Recording, Usage, baselines, play
from refold.lab.content import ContentMeter, Miss, other_names
from refold.lab.metrics import Share, bootstrapped
from refold.lab.replay import Conditions, recorded_prefix
from refold.transcripts import messages


def words(text):
    return len(text.split())


def user(text):
    return messages.request([messages.user_prompt(text)])


def says(text):
    return messages.response([messages.text(text)])


def calls(call, tool="Read", **arguments):
    return messages.response([messages.tool_call(tool, call, arguments)])


def returns(call, text):
    return messages.request([messages.tool_return("Read", call, text)])


def recorded(*payloads):
    return Recording("made", tuple(map(RecordedMessage, payloads)))


LINE = "    raise ValueError('a line that is long enough to be counted as one of the long lines')"
SOURCE = f"     1\tdef work():  \n     2\t{LINE}\n     3\t    return 1"
OLD = f"def work():\n{LINE}"
FILLER = "word " * 100


def worked(*answers):
    return recorded(
        user("please"),
        calls("c1", file_path="main.go"),
        returns("c1", SOURCE + "\nuse --dry-run with lint-staged-files 1.2.3 in os.path"),
        says("Read it."),
        user(FILLER),
        *answers,
    )


class Without:
    """Everything but the third message and its call."""

    def view(self, sent):
        return [*sent[:1], *sent[3:]]


def measured(recording, policy, gap=50):
    reader = Reader(words)
    content = ContentMeter(reader, gap).measure(play(recording, policy, reader))
    return content.kept, content.missed


def test_other_names_are_those_that_a_fold_does_not_look_for():
    text = (
        "--no-verify oh-my-posh phase-14 os.path.join main.go font-metrics.mjs 1.26.0-rc.1 "
        "read-only e.g. 12.34 src/main.py max_tokens renderFrame SP-20447 -- end."
    )
    assert other_names(text) == {
        "--no-verify",
        "oh-my-posh",
        "phase-14",
        "os.path.join",
        "main.go",
        "font-metrics.mjs",
        "1.26.0-rc.1",
    }


@given(st.text("ab-./_1\t:" + "\N{RIGHTWARDS ARROW}", max_size=300))
def test_no_name_counts_by_both_definitions(text):
    assert other_names(text).isdisjoint(identifiers(text))


def test_an_edit_is_possible_while_its_old_text_is_shown_with_or_without_line_numbers():
    edit = calls("c2", "Edit", file_path="main.go", old_string=OLD, new_string="pass")
    everything = baselines()["none"](Reader(words))
    kept, missed = measured(worked(edit), everything)
    assert (kept["edits"], missed) == (Share(1, 1), ())
    kept, missed = measured(worked(edit), Without())
    tokens = Reader(words).tokens(worked(edit).payloads[2])
    assert (kept["edits"], kept["lines"]) == (Share(0, 1), Share(0, 1))
    assert missed == (Miss(5, tokens),)  # read again once, for both


def test_a_patch_needs_the_lines_that_it_takes_out_and_those_around():
    patch = f"*** Begin Patch\n*** Update File: main.go\n@@\n def work():\n-{LINE}\n+pass\n*** End"
    kept, _ = measured(worked(calls("c2", "apply_patch", input=patch)), Without())
    assert kept["edits"] == Share(0, 1)
    other = patch.replace("def work", "def other")  # stood nowhere, so nothing could show it
    kept, _ = measured(worked(calls("c2", "apply_patch", input=other)), Without())
    assert kept["edits"] == Share(0, 0)


def test_names_of_other_kinds_count_and_cost_no_reading():
    answer = says("Now lint-staged-files with --dry-run, 1.2.3 and os.path.")
    kept, missed = measured(worked(answer), Without())
    assert (kept["other names"], missed) == (Share(0, 4), ())
    kept, _ = measured(worked(user("of lint-staged-files"), answer), Without())
    assert kept["other names"] == Share(0, 3)  # the user named one of them just now


def test_a_line_is_shown_too_where_a_policy_quotes_it():
    class Quoting(Without):
        def view(self, sent):
            return [*super().view(sent), user(f"- 7 times: {LINE.strip()}, and more")]

    kept, _ = measured(worked(says(LINE)), Quoting())
    assert kept["lines"] == Share(1, 1)


def test_what_was_read_again_is_there_until_the_next_fold():
    lines = [
        f"    raise ValueError('line {nth} is long enough to count as one of the long lines')"
        for nth in "abc"
    ]
    answers = [part for line in lines for part in (says(line), user(FILLER))]
    recording = recorded(user("\n".join(lines)), user(FILLER), *answers)

    class Folding:
        def view(self, sent):
            return sent[1:] if len(sent) < 6 else sent[5:]

    _, missed = measured(recording, Folding())
    assert [miss.at for miss in missed] == [2, 6]  # the second line came with the first


def timed(*seconds):
    """Prompts and answers in turn, at these times; the usage of the first answer is known."""
    made = [says("yes") if index % 2 else user("again and again") for index in range(len(seconds))]
    usages = [Usage(1_000 + 10 * index) if index % 2 else None for index in range(len(seconds))]
    return Recording(
        "timed",
        tuple(
            RecordedMessage(payload, 1_000 * (1 + at), usage)
            for payload, at, usage in zip(made, seconds, usages, strict=True)
        ),
    )


@pytest.mark.parametrize(
    ("lifetime", "cached"), [(None, [0, 108, 116]), (3_600, [0, 108, 116]), (300, [0, 108, 0])]
)
def test_a_cache_expires_after_a_pause_and_keeps_what_begins_each_request(lifetime, cached):
    recording = timed(0, 10, 309, 320, 630, 640)
    everything = baselines()["none"](Reader(words))
    conditions = Conditions(fixed=103, lifetime=lifetime)
    played = play(recording, everything, Reader(words), conditions=conditions)
    assert [request.cached for request in played.requests] == cached
    assert [request.sent for request in played.requests] == [108, 116, 124]


def test_instructions_and_tools_are_what_usage_has_beside_the_messages():
    assert recorded_prefix(timed(0, 1, 2, 3), Reader(words)) == 1_010 - 5
    assert recorded_prefix(recorded(user("a"), says("b")), Reader(words)) == 0


def test_an_interval_over_sessions_is_wider_than_one_over_names():
    low, high = bootstrapped([(10, 100), (100, 100)])
    assert (low, high) == (0.1, 1.0)
    assert bootstrapped([(55, 100)]) == (0.55, 0.55)
    assert bootstrapped([(10, 100)] * 5 + [(100, 100)] * 5) == bootstrapped(
        [(10, 100)] * 5 + [(100, 100)] * 5
    )
    assert bootstrapped([]) == (0, 1)
