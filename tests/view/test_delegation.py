"""Whose work an agent sees: its own, its callers', and as text that of those it called."""

import pytest
from shown import Talk, changed, lines, used

from refold.testing.wire import Answered, Asked, Call, Responded, Return
from refold.view.profiles import BALANCED, INKEEP
from refold.view.view_input import visibility

FORMATS = ["anthropic-messages", "openai-chat", "pydantic-ai"]
TASKS = (Call("d1", "delegate", {"to": "auth"}), Call("d2", "delegate", {"to": "ui"}))
RESULTS = Answered((Return("d1", "delegate", "2 risks"), Return("d2", "delegate", "no risk")))


def review(profile, scope="/", format="pydantic-ai", *, finished=True):  # noqa: A002
    """Two agents work for a main one, at the same time."""
    talk = Talk(profile, Asked("Is the shop safe?"), format=format, scope=scope)
    talk.say(*used("m1", "list", ["auth.py", "ui.py"], path="."))
    talk.say(Responded("I ask two experts.", TASKS))
    talk.say(Asked("Review auth."), scope="/auth")
    talk.say(Asked("Review the ui."), scope="/ui")
    auth = used("a1", "scan", {"risks": 2}, path="auth.py")
    for one, other in zip(auth, used("u1", "scan", [], path="shop.css"), strict=True):
        talk.say(one, scope="/auth")
        talk.say(other, scope="/ui")
    talk.say(Responded("Two risks in auth.py."), scope="/auth")
    if finished:
        talk.say(Responded("The ui is safe."), scope="/ui")
        talk.say(RESULTS, Responded("Two risks, in auth.py."), Asked("Which?"))
    return talk


@pytest.mark.req("R006", "R009", "R010", "R088")
@pytest.mark.parametrize("format", FORMATS)
def test_the_main_agent_sees_everything_and_delegated_work_as_text(format, snapshot):  # noqa: A002
    request = review(INKEEP, format=format).request()
    assert request.wire.problems(request.messages) == []
    assert lines(request) == snapshot


@pytest.mark.req("R010", "R088")
def test_a_delegated_result_is_told_with_its_input():
    [told] = [text for text in review(INKEEP).texts() if text.startswith("[/auth]\n## Tool")]
    assert told == (
        '[/auth]\n## Tool: scan\n\n**Input:**\n{\n  "path": "auth.py"\n}\n\n'
        '**Output:**\n{\n  "risks": 2\n}'
    )


@pytest.mark.req("R089", "R090")
@pytest.mark.parametrize("profile", [INKEEP, BALANCED], ids=lambda one: one.name)
@pytest.mark.parametrize("format", FORMATS)
def test_a_delegated_agent_sees_its_own_work_and_the_top_level(format, profile, snapshot):  # noqa: A002
    request = review(profile, "/auth", format, finished=False).request()
    assert request.wire.problems(request.messages) == []
    assert [
        word for word in ("Review the ui.", "u1", "shop.css") if word in str(request.body)
    ] == []
    if profile is INKEEP:
        assert lines(request) == snapshot


@pytest.mark.req("R089", "R090")
def test_who_sees_whom():
    scopes = ["/", "/auth", "/auth/deep", "/ui", "/authors"]
    sight = {reader: [visibility(scope, reader) for scope in scopes] for reader in scopes}
    assert sight == {
        "/": ["native", "text", "text", "text", "text"],
        "/auth": ["native", "native", "text", "none", "none"],
        "/auth/deep": ["native", "native", "native", "none", "none"],
        "/ui": ["native", "none", "none", "native", "none"],
        "/authors": ["native", "none", "none", "none", "native"],
    }


@pytest.mark.req("R088")
def test_the_words_of_a_delegated_result_are_not_changed():
    talk = Talk(INKEEP, Asked("Which version?"))
    given = ["1.10", "007", "1e3", "true", "12345678901234567890", "null", '"quoted"', "plain"]
    for nth, one in enumerate(given):
        talk.say(*used(f"c{nth}", "version", one), scope="/a")
    outputs = [text.split("**Output:**\n")[1] for text in talk.texts()[1:]]
    assert outputs == [
        '"1.10"',
        '"007"',
        '"1e3"',
        "true",
        "12345678901234567890",
        "null",
        '"quoted"',
        '"plain"',
    ]


@pytest.mark.req("R088")
def test_calls_of_two_delegations_with_one_id_are_not_mixed_up():
    talk = Talk(INKEEP, Asked("Go."))
    one, two = used("c", "read", "A", path="a"), used("c", "read", "B", path="b")
    for nth in range(2):
        talk.say(one[nth], scope="/a")
        talk.say(two[nth], scope="/b")
    told = talk.texts()[1:]
    assert ['"path": "a"' in text and '"A"' in text for text in told] == [True, False]
    assert ['"path": "b"' in text and '"B"' in text for text in told] == [False, True]


# The order of work: read, then filter by delegation, then limit, then shorten.


def test_what_an_agent_may_not_see_takes_none_of_its_room():
    talk = Talk(INKEEP, scope="/a")
    for nth in range(24):
        talk.say(Asked(f"top {nth}"), Responded("Yes."))
    for nth in range(200):
        talk.say(Asked(f"foreign {nth} " + "x" * 4000), scope="/b")
    talk.say(Asked("Your task."), scope="/a")
    texts = talk.texts()
    assert texts == [*(text for nth in range(24) for text in (f"top {nth}", "Yes.")), "Your task."]


def test_reading_comes_before_filtering():
    talk = Talk(changed(INKEEP, window={"read": 6}), scope="/a")
    talk.say(*(Asked(f"top {nth}") for nth in range(4)))
    talk.say(*(Asked(f"foreign {nth}") for nth in range(4)), scope="/b")
    talk.say(Asked("Your task."), scope="/a")
    assert talk.texts() == ["top 3", "Your task."]


@pytest.mark.req("R037")
def test_told_work_counts_against_the_fixed_limits():
    talk = Talk(INKEEP)
    for nth in range(40):
        talk.say(Asked(f"Ask {nth}."), Responded("I ask.", (Call(f"c{nth}", "ask", {}),)))
        talk.say(Asked(f"told {nth}"), scope=f"/{nth}")
        talk.say(Answered((Return(f"c{nth}", "ask", "ok"),)), Responded("Done."))
    talk.say(Asked("And now?"))
    marker, *shapes = talk.shapes()
    assert "123 messages removed" in marker[0].text
    assert len(shapes) == 47  # with one more step and the marker there would be 51
    told = [text for one in shapes for _, text, *_ in one if "told" in text]
    assert told == [f"[/{nth}]\ntold {nth}" for nth in range(31, 40)]
    assert talk.shapes() == [marker, *shapes]


@pytest.mark.req("R037")
def test_told_work_is_part_of_the_8000_tokens():
    talk = Talk(INKEEP, Asked("Begin."), Responded("I ask.", (Call("c", "ask", {}),)))
    talk.say(Asked("x" * 31_000), scope="/a")
    talk.say(Answered((Return("c", "ask", "ok"),)), Responded("Done."), Asked("And now?"))
    assert sum(map(len, talk.texts())) > 31_000
    talk = Talk(INKEEP, Asked("Begin."), Responded("I ask.", (Call("c", "ask", {}),)))
    talk.say(Asked("x" * 33_000), scope="/a")
    talk.say(Answered((Return("c", "ask", "ok"),)), Responded("Done."), Asked("And now?"))
    assert talk.texts()[1:] == ["Done.", "And now?"]


# A delegated agent whose results fill the window.


def audit(size):
    """A sub-agent reads 15 files, scans, lists dependencies and reads settings: so many tokens."""
    talk = Talk(INKEEP, Asked("Is it safe?"), scope="/audit")
    talk.say(*used("m1", "list", "\n".join(f"src/part_{nth}.py" for nth in range(200)), path="."))
    talk.say(Responded("I ask an expert.", (Call("d1", "delegate", {"to": "audit"}),)))
    talk.say(Asked("Analyze this codebase for security issues."), scope="/audit")
    tools = [*["read"] * 15, "scan", "dependencies", "settings"]
    for nth, tool in enumerate(tools):
        result = f"{tool} {nth}: " + "x = 1\n" * (size * 4 // 6 // len(tools))
        talk.say(*used(f"c{nth}", tool, result), scope="/audit")
    return talk


@pytest.mark.req("R033")
@pytest.mark.parametrize(("window", "share"), [(32_000, 0.75), (200_000, 0.83), (600_000, 0.91)])
def test_a_sub_agents_results_are_archived_and_the_conversation_and_task_stay(window, share):
    below = audit(int(window * (share - 0.05)))
    rows = [row.payload for row in below.inputs().rows]
    assert list(below.request(window).messages)[-36:] == rows[-36:]
    talk = audit(int(window * (share + 0.01)))
    rows = [row.payload for row in talk.inputs().rows]
    request = talk.request(window)
    messages = list(request.messages)
    assert request.wire.problems(messages) == []
    # The conversation: a prompt, a call, its result as memory shows it, a call.
    assert (messages[:2], messages[3]) == (rows[:2], rows[3])
    assert b"## Tool: list" in messages[2]
    assert b"src/part_199.py" in messages[2]
    assert messages[5] == rows[4]  # the task, after a word on the call that is not finished
    assert messages[-1] == rows[-1]  # what it has not read yet
    shapes = [shape for one in messages[6:-1] for shape in request.wire.describe(one).shapes]
    results = [shape.text for shape in shapes if shape.kind == "return"]
    assert len(results) == 17
    assert all("[…archived: " in text and len(text) < 300 for text in results)
    assert request.plan.account.sent < 0.2 * window
