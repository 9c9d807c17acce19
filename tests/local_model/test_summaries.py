"""A real model works on in a small window, and a real model writes the summaries it works on with.

Nothing is asked of its words but what is asked of any summarizer's: they are checked.
"""

import json

import httpx2
from amounts import set_amount
from local_model.deciding import Deciding, local
from local_model.journal import Journal, exchanges_of
from local_model.legality import faults_of
from pydantic_ai import Agent
from pydantic_ai.settings import ModelSettings

from refold import Refold
from refold.fold.extractive import BY
from refold.fold.summary import parse, report_markdown
from refold.log import CODEC, FoldCompleted, FoldFailed, FoldStarted, FoldStepped
from refold.view.profiles import BALANCED

TURNS = set_amount("REFOLD_SUMMARY_TURNS", few=4, quick=4, ci=4, nightly=10, thorough=200)
# Reading and writing is what takes the model's time: a short conversation has a small window, and
# a summarizer that sees all of it at once and is brief.
BRIEF = ModelSettings(max_tokens=120)
WINDOW, SEEN, SETTINGS = (4096, 4096, None) if TURNS >= 20 else (1024, 2048, BRIEF)
SESSION = "garden"
TOOLS_TOLD = "It ends with the system."
"""So Pydantic AI tells a model of tools that it is offered from now on, as recall is."""
PATIENT = BALANCED.model_copy(
    update={"fold": BALANCED.fold.model_copy(update={"wait": 600, "call_limit": 600})}
)
"""On a busy machine a small model takes minutes for what a large one does in seconds."""
BEDS = ("north", "south", "pond", "wall", "gate")


def prompt(turn):
    bed = BEDS[turn % len(BEDS)]
    return f"Turn {turn}: please check bed {bed} and keep the plan in beds/{bed}.md up to date."


def looked(name):
    """What a bed looks like; enough of it to fill a window in a few turns."""
    rows = (f"row {nth}: plant P{nth:03d}, height {nth % 37} cm, soil ok" for nth in range(14))
    return f"beds/{name}.md\n" + "\n".join(rows)


def script(turn, step):
    """One look in each turn but the last, which shows that it goes on."""
    return [("look", {"bed": BEDS[turn % len(BEDS)]})] if not step and turn < TURNS else []


async def test_a_real_model_summarizes_and_the_agent_goes_on(tmp_path, local_model):
    url, path = local_model(SEEN), tmp_path / "journal.jsonl"
    journal = Journal(path)
    async with (
        httpx2.AsyncClient(timeout=600) as plain,
        journal.client() as client,
        Refold(
            f"sqlite:///{tmp_path}/refold.db",
            profile=PATIENT,
            summarizer=local(url, plain, window=SEEN, settings=SETTINGS),
        ) as refold,
    ):
        model = Deciding(local(url, client, window=WINDOW), script, journal)
        agent = Agent(model, capabilities=[refold], model_settings={"max_tokens": 24})

        @agent.tool_plain
        def look(bed: str) -> str:
            """Look at a bed."""
            return looked(bed)

        for turn in range(1, TURNS + 1):
            journal.turn = turn
            journal.write("asked")
            result = await agent.run(prompt(turn), conversation_id=SESSION)
            assert result.output
        values = [CODEC.decode(entry) for entry in await refold.log.read(SESSION)]
    journal.close()
    check(values, exchanges_of(path))


def check(values, answered):
    for one in answered:
        assert not {*faults_of(one, prompt(one.turn))} - {TOOLS_TOLD}
    begun = [one for one in values if isinstance(one, FoldStarted)]
    made = [one for one in values if isinstance(one, FoldCompleted)]
    failed = [one for one in values if isinstance(one, FoldFailed)]
    assert made
    assert len(begun) == len(made) + len(failed)
    summaries = [parse(one.summary) for one in made]
    written = [one for one in summaries if one.by != BY]
    print(f"\n{TURNS} turns, {len(made)} folds, {len(written)} by the model")  # noqa: T201
    asked = [one for one in values if isinstance(one, FoldStepped)]
    for one, fold in zip(summaries[-1:], made[-1:], strict=True):
        before = [json.dumps(step.result) for step in asked if step.fold == fold.fold]
        print("\n--- as it was written:", *before, sep="\n")  # noqa: T201
        print("\n--- as it stands:", one.text, "\n--- report:", report_markdown(one), sep="\n")  # noqa: T201
    for one in summaries:
        assert one.report is not None
        invented = {word for word in one.text.split() if word.startswith("beds/")} - {
            f"beds/{bed}.md" for bed in BEDS
        }
        assert all(word.startswith(tuple(f"beds/{bed}.md" for bed in BEDS)) for word in invented)
