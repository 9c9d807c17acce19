"""Fold after fold: rules, newest values, open errors and causes outlive the folds they were in."""

import random

import pytest
from folding import TIGHT, fold, material_of, session_of, spelled
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from shown import turn, used
from talks import Talk, setup

from refold import Refold
from refold.fold.extractive import extractive_summary
from refold.fold.facts import COMMANDS, ERRORS, OPEN, THREADS, VALUES
from refold.fold.material import Earlier, Material
from refold.fold.summary import parse
from refold.log import CODEC, FoldCompleted, Message, Span
from refold.stores import MemoryStore
from refold.testing.wire import Asked, Responded
from refold.view.profiles import BALANCED

FOLDS = 5
VALUES_IN = TIGHT.model_copy(update={"placement": "replacement", "max_tokens": 3_000})


def chain(*rounds):
    """The summaries of a session that is folded after each round."""
    session = session_of(Asked("Begin."), Responded("I begin."))
    made = []
    for said in rounds:
        for payload in spelled("pydantic-ai", *said, *turn("Go on."), Asked("And now?")):
            session.add(Message(payload))
        _, summary = fold(session, VALUES_IN)
        assert summary is not None
        made.append(summary)
        for payload in spelled("pydantic-ai", Responded("Well.")):
            session.add(Message(payload))
    return made


def quiet(count=FOLDS):
    return [[*turn(f"Look at part {nth}.")] for nth in range(count)]


def test_rules_newest_values_open_errors_and_causes_outlive_five_folds():
    first = [
        *turn("Never push to main."),
        *turn("Set READ_TIMEOUT to 45."),
        *turn("Run.", used("a", "bash", "Error: no disk", command="make"), reply="I stop here."),
        *turn("Why?", reply="It fails because /var/lib/data is full on the build server."),
        *turn("Now set READ_TIMEOUT to 60."),
    ]
    last = chain(first, *quiet())[-1].text
    assert "Never push to main." in last
    assert "- READ_TIMEOUT: 60 (user 14), before: 45 (user 6)" in last
    assert '- The tool bash(make) returned: "Error: no disk" (entry 10)' in last
    assert "because /var/lib/data is full" in last


def test_a_value_changes_across_folds_though_each_saw_one():
    rounds = [[*turn(f"Set READ_TIMEOUT to {value}.")] for value in (30, 45, 60)]
    made = chain(*rounds)
    assert made[0].section(VALUES) == ()
    told = [claim.text for claim in made[-1].section(VALUES)]
    assert len(told) == 1
    assert told[0].startswith("READ_TIMEOUT: 60 (user ")
    assert "before: 45 (user " in told[0]


def test_an_error_of_an_earlier_fold_that_went_away_says_so():
    failing = [*turn("Run.", used("a", "bash", "Error: no disk", command="make"))]
    fixed = [*turn("Again.", used("b", "bash", "Built.", command="make"))]
    made = chain(failing, *quiet(1), fixed, *quiet(1))
    assert [len(one.sources) for summary in made for one in summary.section(ERRORS)] == [1, 1, 2, 2]
    (told,) = made[-1].section(ERRORS)
    assert "(no error from the same call in entry " in told.text
    assert [one.text for one in made[-1].section(COMMANDS)] == ['make: "Built."']


def test_a_command_of_an_earlier_fold_has_its_newest_result():
    rounds = [
        [*turn("Run.", used(f"c{nth}", "bash", f"{nth} passed", command="pytest"))]
        for nth in range(FOLDS)
    ]
    made = chain(*rounds)
    assert [one.text for one in made[-1].section(COMMANDS)] == ['pytest: "4 passed"']


def test_a_call_without_an_answer_stays_open_until_it_has_one():
    call, answer = used("a", "deploy", "Deployed.", url="https://example.org")
    made = chain([Asked("Deploy."), call, Asked("Stop."), Responded("I stop.")], *quiet(2))
    assert [one.text for one in made[-1].section(OPEN)] == ["deploy(https://example.org)"]
    material = Material((), (Earlier(99, made[-1], 98),))
    assert extractive_summary(material).section(OPEN) == made[-1].section(OPEN)
    (passage,) = material_of(session_of(answer), (Span(2, 2),)).passages
    answered = Material((passage._replace(seq=200),), (Earlier(99, made[-1], 98),))
    assert extractive_summary(answered).section(OPEN) == ()


def test_nothing_is_told_twice():
    first = [
        *turn("Never push to main.", reply="I will never push to main because you said so to me."),
        *turn("Run.", used("a", "bash", "Error: no disk", command="make")),
    ]
    last = chain(first, *quiet())[-1]
    for line in ("because you said so to me", "Error: no disk"):
        assert last.text.count(line) == 1
    refs = [(one.sources, one.quote) for one in last.section(THREADS)]
    assert len(refs) == len({*refs})


def rounds_of(seed):
    """Five rounds of work, and what must be known after them."""
    chance = random.Random(seed)  # noqa: S311 - a test's choice
    rules: list[str] = []
    values: dict[str, int] = {}
    before: dict[str, int] = {}
    failing: set[str] = set()
    rounds = []
    for nth in range(FOLDS):
        said = []
        for step in range(chance.randint(2, 6)):
            match chance.randrange(4):
                case 0:
                    rules.append(f"Never touch the file prices_{nth}_{step}.csv.")
                    said += turn(rules[-1])
                case 1:
                    name = chance.choice(["READ_TIMEOUT", "MAX_RETRIES", "LOG_LINES"])
                    value = chance.randrange(1_000)
                    if name in values and values[name] != value:
                        before[name] = values[name]
                    values[name] = value
                    said += turn(f"Set {name} to {value}.")
                case 2:
                    command = chance.choice(["make", "pytest -q", "npm run build"])
                    good = chance.random() < 0.5
                    (failing.discard if good else failing.add)(command)
                    result = "5 passed" if good else f"Error: broken {nth}.{step}"
                    said += turn("Run.", used(f"{nth}.{step}", "bash", result, command=command))
                case _:
                    said += turn(
                        f"Look at part {nth}.{step}.", reply="It is as it should be there."
                    )
        rounds.append(said)
    return rounds, rules, {name: values[name] for name in before}, failing


@pytest.mark.parametrize("seed", range(30))
def test_five_folds_lose_no_rule_no_newest_value_and_no_open_error(seed):
    rounds, rules, values, failing = rounds_of(seed)
    last = chain(*rounds)[-1]
    for rule in rules:
        assert rule in last.text
    told = {one.key: one.text for one in last.section(VALUES)}
    for name, value in values.items():
        assert told[name].startswith(f"{name}: {value} ")
        assert told[name] in last.text
    unsolved = {one.key for one in last.section(ERRORS) if len(one.sources) == 1}
    assert unsolved == failing
    for command in failing:
        assert f"The tool bash({command}) returned:" in last.text


async def test_through_sessions_and_their_store():
    """The same through the log and the engine, as a host folds it."""
    log = MemoryStore().log()
    talk = await Talk.open(log, setup(BALANCED, window=100_000))
    await talk.go(*turn("Hello."), *turn("Never push to main."), *turn("Set READ_TIMEOUT to 45."))
    failing = used("a", "bash", "Error: no disk", command="make")
    await talk.go(*turn("Run it.", failing, reply="It fails because the disk is full there."))
    for nth in range(FOLDS):
        await talk.go(*turn(f"Set READ_TIMEOUT to {60 + nth}."), *turn("x" * 30_000))
        await talk.session.compact()
    done = [parse(one.summary) for one in await talk.values(FoldCompleted)]
    assert len(done) == FOLDS
    text = done[-1].text
    assert "Never push to main." in text
    assert f"READ_TIMEOUT: {60 + FOLDS - 1} (user " in text
    assert '- The tool bash(make) returned: "Error: no disk"' in text
    assert "because the disk is full there" in text


async def test_through_refold_and_its_profile():
    def answer(messages, info):  # noqa: ARG001 - as Pydantic AI calls it
        return ModelResponse([TextPart("It is slow because the disk is full there.")])

    model = FunctionModel(answer, model_name="test")
    async with Refold("memory:", profile="balanced") as refold:
        agent = Agent(model, capabilities=[refold])

        async def ask(*prompts):
            for prompt in prompts:
                await agent.run(prompt, conversation_id="c")

        await ask("Hello.", "Never push to main.", "Set READ_TIMEOUT to 45.")
        for nth in range(FOLDS):
            await ask(f"Set READ_TIMEOUT to {60 + nth}.", "x y " * 6_000)
            await (await refold.session("c", model)).compact()
        values = map(CODEC.decode, await refold.log.read("c"))
        *_, last = folds = [parse(one.summary) for one in values if isinstance(one, FoldCompleted)]
    assert len(folds) >= FOLDS
    assert "Never push to main." in last.text
    assert f"READ_TIMEOUT: {60 + FOLDS - 1} (user " in last.text
    assert "because the disk is full there" in last.text
