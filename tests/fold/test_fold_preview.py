"""What a fold would do, before it is done; and what it tells those who watch."""

from folding import TIGHT, fold, material_of, session_of, sheet_of
from sessions import Quarter
from shown import turn, used

from refold.fold.compactor import MAX_NAMES, preview
from refold.fold.events import CompactionComplete, CompactionStart
from refold.fold.extractive import extractive_summary
from refold.fold.material import boundary
from refold.fold.replace import render_summary
from refold.testing.wire import Asked
from refold.view import Account
from refold.view.budget import Budget
from refold.view.profiles import Profile
from refold.view.view import View
from refold.view.view_input import weight


def a_session():
    names = " ".join(f"src/module_{nth}.py" for nth in range(40))
    said = (one for nth in range(4) for one in turn(f"Ask {nth}.", used(f"c{nth}", "ls", names)))
    return session_of(*said, Asked("And now?"))


def size(session):
    plan = View(sheet_of(session), Profile(name="plain")).request(Budget(window=1_000_000)).plan
    return plan.tokens


def previewed(values):
    session = a_session()
    inputs = sheet_of(session)
    where = boundary(inputs, values.keep)
    summary = render_summary(
        extractive_summary(material_of(session, where.spans)), values, Quarter()
    )
    tokens = sum(map(weight, inputs.rows))
    return session, preview(where, summary, tokens, len(inputs.rows), Quarter())


def test_complaint_11_a_preview_says_what_the_fold_then_does():
    session, before = previewed(TIGHT)
    assert before.before == size(session)
    assert before.messages + before.kept == len(session.messages())
    where, summary = fold(session, TIGHT)
    assert before.spans == where.spans
    assert before.text == summary.text
    assert before.after == size(session)
    assert before.freed == before.before - before.after > 0
    assert len(sheet_of(session).rows) == before.kept


def test_a_preview_prints_as_three_sentences():
    _, found = previewed(TIGHT)
    lines = str(found).splitlines()
    assert len(lines) == 3
    assert f"{found.messages} messages would become a summary" in lines[0]
    assert f"to about {found.request_after:,} tokens" in lines[1]
    assert "no price is known" in lines[2]


def test_a_preview_names_what_would_be_found_in_the_log_only():
    values = TIGHT.model_copy(update={"ledger_tokens": 40})
    _, found = previewed(values)
    assert found.lost > MAX_NAMES == len(found.names)
    assert not any(name in found.text for name in found.names)
    _, roomy = previewed(TIGHT)
    assert roomy.lost == 0
    assert "src/module_0.py" in roomy.text


def test_the_start_says_how_full_the_view_is():
    account = Account(system=11, conversation=22, tools=33)
    event = CompactionStart.of("manual", account)
    assert event.as_json() == {
        "type": "session.compaction_start",
        "trigger": "manual",
        "systemTokens": 11,
        "conversationTokens": 22,
        "toolDefinitionsTokens": 33,
    }
    assert event.telemetry() == {**event.as_json(), "type": "session_compaction_start"}


ENDED = CompactionComplete(
    "f-1",
    pre_tokens=900,
    post_tokens=300,
    messages_removed=19,
    summary="We chose SQLite.",
    checkpoint=2,
    checkpoint_path="checkpoints/002-parser.md",
    model="a model",
    duration_ms=12,
    usage={"input": 500},
    request_id="chatcmpl-7",
)


def test_the_end_says_what_changed_and_where_it_is_written():
    assert ENDED.as_json() == {
        "type": "session.compaction_complete",
        "success": True,
        "error": None,
        "preCompactionTokens": 900,
        "postCompactionTokens": 300,
        "tokensRemoved": 600,
        "messagesRemoved": 19,
        "summaryContent": "We chose SQLite.",
        "checkpointNumber": 2,
        "checkpointPath": "checkpoints/002-parser.md",
        "checkpointError": None,
        "fold": "f-1",
        "requestId": "chatcmpl-7",
        "compactionTokensUsed": {"input": 500},
        "report": None,
    }


def test_a_fold_that_failed_ends_too():
    event = CompactionComplete("f-1", "no model answered")
    told = event.as_json()
    assert (told["success"], told["error"]) == (False, "no model answered")
    assert (told["tokensRemoved"], told["messagesRemoved"]) == (0, 0)


def test_telemetry_has_figures_and_no_ones_words():
    assert ENDED.telemetry() == {
        "type": "session_compaction_complete",
        "success": True,
        "tokensRemoved": 600,
        "messagesRemoved": 19,
        "checkpointNumber": 2,
        "model": "a model",
        "durationMs": 12,
        "fold": "f-1",
        "requestId": "chatcmpl-7",
    }
