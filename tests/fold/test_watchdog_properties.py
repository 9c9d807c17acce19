"""The watchdog in sessions of any shape and format: requests stay legal, and pins in their room."""

import asyncio

import pytest
from folding import spelled
from hypothesis import given, settings
from hypothesis import strategies as st
from shown import changed, turn, used
from talks import SMALL, setup

from refold.log import PartRef
from refold.session import Session
from refold.stores import open_store
from refold.testing.wire import SPELLINGS, Asked, Responded
from refold.view import Budget

moves = st.lists(
    st.tuples(
        st.sampled_from(["read", "read", "read", "grep", "edit", "fold", "pin", "other", "rewind"]),
        st.integers(0, 3),
        st.sampled_from([40, 400, 400, 2_000]),
    ),
    max_size=14,
)


@pytest.mark.parametrize("format", sorted(SPELLINGS))
@settings(max_examples=25)
@given(moves)
def test_requests_are_legal_and_pins_within_their_room(format, script):  # noqa: A002
    asyncio.run(_played(format, script))


async def _played(format, script):  # noqa: A002 - the glossary's word
    given = setup(changed(SMALL, watch={"share": 0.3}), window=8_000)
    room = int(0.3 * Budget(window=8_000).limit)
    async with open_store("memory:") as store:
        log = store.log()
        session = await Session.open(log, "s", given, format=format)
        people = set()
        await session.say(*spelled(format, Asked("Begin.")))
        await session.answer(*spelled(format, Responded("Yes.")))
        for nth, (move, which, size) in enumerate(script):
            match move:
                case "fold":
                    try:
                        await session.compact()
                    except Exception as error:  # noqa: BLE001 - there may be nothing to fold
                        assert "NothingToFold" in type(error).__name__  # noqa: PT017
                case "pin":
                    part = PartRef(max(2, session.head - which), 0)
                    people.add(part)
                    await session.pin(part)
                case "rewind":
                    await session.rewind(max(3, session.head - which))
                    people &= {*session._live.view.inputs.outline.pins}
                case "other":
                    session = await Session.open(log, "s", given, format=None)
                case tool:
                    result = f"{which}" * size
                    for one in turn("Go.", used(f"c{nth}", tool, result, path=f"{which}.py")):
                        if isinstance(one, Responded):
                            request = await session.request()
                            assert request.wire.problems(request.messages) == []
                            await session.answer(*spelled(format, one))
                        else:
                            await session.say(*spelled(format, one))
            outline = session._live.view.inputs.outline
            assert people <= {*outline.pins}
            assert not people & {*outline.watched}
            assert {*outline.watched} <= {*outline.pins}
            assert _kept(session, outline.watched) <= room
        request = await session.request()
        assert request.wire.problems(request.messages) == []


def _kept(session, parts):
    """What the pinned parts themselves cost, however they are shown."""
    inputs = session._live.view.inputs
    rows = {row.seq: row for row in inputs.rows}
    shown = [rows[one.seq].parts[one.index].tokens for one in parts if one.seq in rows]
    quoted = [quote for quote in inputs.pinned if quote.sources[0] in parts]
    return sum(shown) + sum(inputs.counter.text(one.text) for one in quoted)
