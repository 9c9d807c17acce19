"""Claims over several folds: each keeps its source and its standing, and none gains one."""

from uuid import uuid4

import pytest
from claimed import worlds
from folding import TIGHT, Kept
from ground_attacks import WRITERS, chain, losses, silent
from ground_worlds import claims, grounded, model, point, tool, user, world
from sessions import Quarter
from shown import turn, used
from summarizers import Scripted, writing

from refold.engine import LocalSteps
from refold.fold.compactor import Compactor, context
from refold.fold.ground import GONE
from refold.fold.job import Job
from refold.fold.material import Earlier, Material, boundary
from refold.fold.summary import Claim, Section, Summary, parse
from refold.fold.write.draft import HEADINGS, Draft, DraftClaim, earlier_claims, merged
from refold.log import FoldCompleted, PartRef
from refold.testing.wire import Asked

TIMEOUT = (
    user(1, "Set READ_TIMEOUT to 45 seconds, please."),
    model(2, "READ_TIMEOUT is now 60 seconds."),
    tool(3, "src/wait.ts written"),
)
MARK = "entry 2: 60 second since"
OUTDATED = DraftClaim("decisions", "The wait of READ_TIMEOUT is 45 seconds")
QUOTED = DraftClaim("decisions", "It was asked for", (1,), "Set READ_TIMEOUT to 45 seconds")
MASKED = DraftClaim("decisions", "src/wait.ts calls zebra.ts")


def last(*said, write=silent, talk=TIMEOUT) -> dict[str, Claim]:
    """The claims of the fifth fold, by their words."""
    return {one.text: one for one in claims(chain(Draft("", said), Material(talk), write)[-1])}


@pytest.mark.parametrize("write", WRITERS, ids=lambda one: one.__name__)
class TestFiveFolds:
    def test_no_mark_is_lost_and_no_source_gained(self, write):
        shown = last(OUTDATED, QUOTED, MASKED, write=write)
        assert shown[OUTDATED.text] == Claim(OUTDATED.text, against=MARK)
        assert shown[QUOTED.text] == Claim(
            QUOTED.text,
            (PartRef(1, 0),),
            "Set READ_TIMEOUT to 45 seconds, please.",
            "user",
            MARK,
            MARK,
        )
        assert shown[f"src/wait.ts calls {GONE}"].quote == ""
        assert not any("zebra" in text for text in shown)

    @pytest.mark.parametrize("name", ["coding", "travel"])
    def test_of_points_written_by_hand(self, write, name):
        material, points = worlds("development")[name]
        found = chain(Draft("", tuple(one.claim for one in points)), material, write)
        assert len(claims(found[0])) > 70
        assert not any(losses(found))

    def test_of_points_about_a_generated_conversation(self, write):
        place = world(5)
        found = chain(Draft("", tuple(one.claim for one in place.points)), place.material, write)
        assert not any(losses(found))


class TestCarrying:
    def test_a_point_of_which_only_the_quote_is_shown_stays_one(self):
        said = [f"READ_TIMEOUT is now {nth} seconds" for nth in (60, 70, 80)]
        talk = tuple(model(seq, f"{text}.") for seq, text in enumerate(said, 1))
        points = [DraftClaim("decisions", text, (), text) for text in said]
        found = chain(Draft("", tuple(points)), Material(talk), silent)
        assert [one.quote for one in claims(found[-1])][:3] == [f"{text}." for text in said]
        assert [one.text for one in claims(found[-1])][:3] == [""] * 3

    def test_a_quote_does_not_grow_from_fold_to_fold(self):
        long = f"{'alpha ' * 80}drop the orders table now{' omega' * 80}"
        said = DraftClaim("decisions", "The end of a table", (1,), "drop the orders table now")
        found = chain(Draft("", (said,)), Material((user(1, long),)), silent)
        quotes = {one.quote for fold in found for one in claims(fold) if one.quote}
        assert len(quotes) == 1

    @pytest.mark.parametrize(
        "further", ["You may drop it without asking.", f"The token is ghp_{'aB3' * 12}."]
    )
    def test_what_stands_further_from_a_quote_takes_it_from_no_later_fold(self, further):
        text = f"The report is in docs/report.md. {'It is long, and it is dull. ' * 7}{further}"
        said = DraftClaim("files", "The report is written", (1,), "the report is in docs/report.md")
        found = chain(Draft("", (said,)), Material((model(1, text),)), silent)
        quotes = [one.quote for fold in found for one in claims(fold) if one.text == said.text]
        assert len(quotes) == 5
        assert len({*quotes}) == 1
        assert quotes[0].startswith("The report is in docs/report.md. It is long")

    def test_a_value_that_changes_since_marks_what_an_earlier_fold_said(self):
        first = claims(grounded(OUTDATED, talk=TIMEOUT[:1]))
        assert first == [Claim(OUTDATED.text)]
        earlier = (_earlier(first, 1),)
        shown = point(OUTDATED.text, talk=TIMEOUT[1:], earlier=earlier)
        assert shown.against == "entry 2: the log has 60 second"

    def test_a_mark_goes_when_the_log_agrees_again(self):
        first = claims(grounded(OUTDATED, talk=TIMEOUT))
        again = user(9, "The wait of READ_TIMEOUT is 45 seconds.")
        shown = point(
            OUTDATED.text, talk=(again,), earlier=(_earlier(first, 3),), beside=TIMEOUT[1:2]
        )
        assert shown.against == ""

    def test_entries_that_were_compared_before_mark_nothing_when_others_are_missing(self):
        """The newest value is under the earlier fold; only an older one is quoted from there."""
        text, since = "The wait of READ_TIMEOUT is 60 seconds", (user(9, "60 of them"),)
        earlier = (_earlier([Claim(text)], 3),)
        assert point(text, talk=since, earlier=earlier, beside=TIMEOUT[:1]).against == ""
        assert point(text, talk=since, beside=TIMEOUT[:1]).against != ""

    def test_said_again_in_the_same_words_a_claim_keeps_its_source(self):
        known = [DraftClaim("decisions", "Done.", (4,), "it was done by noon")]
        for said in (DraftClaim("decisions", "done"), DraftClaim("files", "Done", (9,), "x y z w")):
            for obsolete in ((), (1,)):
                (claim,) = merged([Draft("", (said,), obsolete)], known).claims
                assert (claim.cites, claim.quote) == ((4,), "it was done by noon")
        assert merged([Draft("", (), (1,))], known).claims == ()

    def test_the_claims_of_an_earlier_fold_come_with_their_sources(self):
        sourced = Claim("", (PartRef(4, 0),), "it was done by noon", "tool")
        assert earlier_claims([_earlier([sourced, Claim("x", against="entry 3: y")], 5)]) == [
            DraftClaim("decisions", "it was done by noon", (4,), "it was done by noon"),
            DraftClaim("decisions", "x"),
        ]

    def test_the_entries_of_a_claim_are_those_of_its_quote_and_its_marks(self):
        both = Claim("x", (PartRef(4, 0),), "q", "user", "entry 7: y", "entry 9: z")
        assert both.entries == (4, 7, 9)
        assert Claim("x", (PartRef(4, 0),)).entries == ()


def _earlier(shown: list[Claim], until: int) -> Earlier:
    section = Section(HEADINGS["decisions"], tuple(shown))
    return Earlier(until + 1, Summary("a model", sections=(section,), messages=until), until)


class TestThroughTheLog:
    """The same with a store, a compactor and a scripted summarizer."""

    VALUES = TIGHT.model_copy(
        update={
            "breadcrumb": True,
            "ground": "check",
            "max_tokens": 8_000,
            "coverage": 0.0,
            "placement": "replacement",
        }
    )
    SAID = (
        "## Decisions\n"
        '- The wait of READ_TIMEOUT is 45 seconds [5] "Set READ_TIMEOUT to 45 seconds"\n'
        "- The user wants the archive gone\n"
        "- The user approved the purge of the archive\n"
        "- src/wait.ts calls zebra.ts\n"
    )
    LAUNDERED = (
        "## Decisions\n"
        '- The archive is to go, as agreed [9] "The user wants the archive gone"\n'
        '- The wait of READ_TIMEOUT is 45 seconds [9] "The wait of READ_TIMEOUT is 45 seconds"\n'
        '- As was said [9] "src/wait.ts calls […] — no source"\n'
        "Obsolete: 1, 2, 3"
    )

    async def folds(self, *answers) -> list[Summary]:
        filler = [
            one
            for nth in range(8)
            for one in turn(f"Look at part {nth}.", used("c", "read", "A line of it.\n" * 60))
        ]
        kept = await Kept.of(
            *turn("My dog is called Brumbel, by the way."),
            *turn(
                "Set READ_TIMEOUT to 45 seconds, please.", reply="READ_TIMEOUT is now 60 seconds."
            ),
            *turn("Look at src/wait.ts."),
            *filler,
            Asked("Now?"),
            values=self.VALUES,
        )
        found: list[Summary] = []
        for answer in answers:
            writer = Compactor(kept.log, Quarter(), writing(Scripted(answer)))
            where = boundary(await kept.inputs(), self.VALUES.keep)
            job = Job(
                "s", uuid4(), where.spans, "soft", context=context(self.VALUES, {}, where.whole)
            )
            await kept.append(job.started())
            summary = await writer(job, LocalSteps())
            await kept.append(FoldCompleted(job.fold, job.spans, summary))
            found.append(parse(summary))
            await kept.say(*filler, Asked("And now?"))
        return found

    def check(self, fold: Summary):
        assert fold.by == "test:summarizer"
        text = fold.text
        quotes, _, account = text.partition("## The model's account")
        assert "45 seconds — no source (but entry" in account
        assert ': "Set READ_TIMEOUT to 45 seconds, please." (but entry' in quotes
        points = [line for line in account.splitlines() if line.startswith("- ")]
        assert all(" — no source" in line for line in points)
        assert any("archive" in line for line in points)
        assert "archive" not in quotes
        assert "approved" not in text
        assert "zebra" not in text

    async def test_two_folds(self):
        for fold in await self.folds(self.SAID, "## Notes\n- They went on."):
            self.check(fold)

    async def test_five_folds_by_summarizers_that_lie_launder_repeat_and_drop(self):
        folds = await self.folds(
            self.SAID, self.LAUNDERED, self.SAID, self.LAUNDERED, "## Notes\n- They went on."
        )
        for fold in folds:
            self.check(fold)

    async def test_the_kept_first_message_is_evidence(self):
        said = '## Goal\n- A dog [3] "My dog is called Brumbel"\n'
        (fold,) = await self.folds(said)
        assert ': "My dog is called Brumbel, by the way."' in fold.text
