"""64 turns in `copilot` on each surface, compared with the table in the documentation."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import re
import threading
import time

import pytest
from refold_commands import quick
from requirement_report import ran
from surfaces import PLAYED, conversation, playing, texts, turn_by_turn
from terminal.chunks import counted, prompt_of
from terminal.pieces import Gate, Pause

from refold.view.profiles import PROFILES, STATIC_MARKER

WINDOW = 12_000
MARKED = STATIC_MARKER.partition("{")[0]
PROMPTS = [f"Prompt {nth}: {'and so on, ' * 150}".strip() for nth in range(1, 65)]
HELD = 2  # the summary whose request waits for it


class Script:
    """Holds the first two summaries: the first for two turns, the second until a request waits."""

    def __init__(self, provider):
        self.provider = provider
        provider.summary = self.summary
        provider.otherwise = self.answer
        self.during = []  # what came while the first summary was written

    @property
    def count(self):
        """How many folds were begun; each may take several calls."""
        return sum("This is part 1 of" in texts(asked)[-1] for asked in self.provider.folds)

    def summary(self, asked):
        first, nth = "This is part 1 of" in texts(asked)[-1], self.count
        if first and nth == 2:
            threading.Thread(target=self.release_when_all_wait, daemon=True).start()
        return [*([Gate(str(nth))] if first and nth <= HELD else []), f"Summary {nth}: `a.py`"]

    def answer(self, asked):
        if self.count == 1:
            self.during.append(asked)
        if len(self.during) == 2 and self.during[-1] is asked:
            self.provider.release("1")
            return [Pause(3), "Yes."]
        return [Pause(0.5), "Yes."] if share(asked) > 0.78 else "Yes."

    def release_when_all_wait(self):
        count = 0
        while count != len(self.provider.received):
            count = len(self.provider.received)
            time.sleep(2)
        self.provider.release("2")


@pytest.fixture(scope="module", params=PLAYED)
def played(request, tmp_path_factory, quick):
    with playing(request.param, tmp_path_factory.mktemp("talk"), quick) as surface:
        script = Script(surface.provider)
        asyncio.run(surface.play(PROMPTS, profile="copilot", window=WINDOW))
    return request.param, surface.provider, script


@pytest.fixture
def provider(played):
    surface, provider, _ = played
    ran(surface)
    return provider


@pytest.fixture
def phases(played, provider):
    """The requests of each row of the table."""
    _, _, script = played
    received = list(provider.received)
    begins = [nth for nth, one in enumerate(received) if one.for_fold and begun(one)]
    main = [one for one in received if not one.for_fold]

    def before(nth):
        return next(one for one in reversed(received[: nth + 1]) if not one.for_fold)

    applied = [next(one for one in main if standing(one) == nth) for nth in (1, 2)]
    return {
        "the first fold begins": before(begins[0]),
        "two turns later": script.during[1],
        "the turn after": main[main.index(script.during[1]) + 1],
        "the second fold begins": before(begins[1]),
        "the last request before it is done": main[main.index(applied[1]) - 1],
        "the request after that": applied[1],
    }


def share(asked):
    return counted(prompt_of(asked)) / WINDOW


def begun(asked):
    return "This is part 1 of" in texts(asked)[-1]


def standing(asked):
    """Which summary a request shows; 0 if none."""
    found = re.search(r"^Summary (\d+): `a.py`", "\n".join(texts(asked)), re.MULTILINE)
    return int(found[1]) if found else 0


@pytest.mark.req("R040", "R041", "R042", "R044", "R070", "R082", "R122")
def test_what_is_sent_is_what_the_table_says(phases):
    for row in turn_by_turn("copilot"):
        stated = int(row["share"].removesuffix(" %")) / 100
        # The provider counts in its own way, and a chat has more to say of its tools.
        assert abs(share(phases[row["what happens"]]) - stated) <= 0.05, row


@pytest.mark.req("R044", "R082", "R141")
def test_requests_go_on_while_a_summary_is_written(provider, phases):
    assert [asked.prompt for asked in provider.asked] == PROMPTS
    assert standing(phases["the first fold begins"]) == 0
    assert standing(phases["two turns later"]) == 0
    assert standing(phases["the turn after"]) == 1
    assert standing(phases["the last request before it is done"]) == 1
    assert standing(phases["the request after that"]) == 2


@pytest.mark.req("R042")
def test_nothing_is_sent_beyond_the_second_mark(provider):
    assert 0.87 < max(map(share, provider.asked)) < 0.96
    # It waits instead: nothing is left out to stay below.
    assert not any(MARKED in text for asked in provider.asked for text in texts(asked))


@pytest.mark.req("R068", "R069", "R070")
def test_the_replacement_has_the_summary_the_users_messages_and_what_is_newer(phases):
    replacement, *newer = conversation(phases["the turn after"])
    assert "## The user's words" in replacement["content"]
    quotation = r"\(entry \d+, 1,\d+ characters in all\) Prompt \d+: and"
    assert re.search(quotation, replacement["content"])
    assert "...<truncated>..." in replacement["content"]
    # The second one stands for more messages of the user than the profile quotes.
    second, *_ = conversation(phases["the request after that"])
    assert re.search(r"\[\d+ earlier messages of the user omitted\]", second["content"])
    assert second["content"].count("\n- (entry ") <= PROFILES["copilot"].fold.user_messages
    said = [one["content"] for one in newer if one["role"] == "user"]
    assert said == PROMPTS[PROMPTS.index(said[0]) :][: len(said)]
    assert len(said) >= 3
    assert not any(PROMPTS.index(said[0]) > PROMPTS.index(one) for one in said)


@pytest.mark.req("R061", "R063")
def test_the_session_calls_the_model_directly(provider):
    assert provider.folds
    for asked in provider.folds:
        assert asked.headers["x-interaction-type"] == "conversation-compaction"
        assert not asked.body.get("tools")
