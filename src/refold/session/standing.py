"""How a session stands: what it holds, and what its view shows."""

from refold.models.setup import Setup
from refold.session.folds import Folds
from refold.session.follow import Following
from refold.session.measuring import Filled, filled
from refold.view import Sheet


class Standing:
    """What a session tells of itself, as far as it has read its log."""

    def __init__(self, following: Following, folds: Folds) -> None:
        self._following = following
        self._folds = folds

    @property
    def name(self) -> str:
        """Its name."""
        return self._following.name

    @property
    def setup(self) -> Setup:
        """For which model and by which profile it is managed now."""
        return self._following.setup

    @property
    def head(self) -> int:
        """The newest entry that this view has taken in."""
        return self._following.head

    @property
    def said(self) -> list[bytes]:
        """The messages that are not folded, as they were said."""
        return [row.payload for row in self._following.view.sheet.rows]

    @property
    def sheet(self) -> Sheet:
        """What its view is planned over."""
        return self._following.view.sheet

    @property
    def record(self) -> int:
        """The entry that records the newest request; 0 before the first."""
        return self._following.previous.seq if self._following.previous else 0

    def said_by(self, seq: int) -> list[bytes]:
        """Those of them that were said by then."""
        return [row.payload for row in self._following.view.sheet.rows if row.seq <= seq]

    @property
    def answered(self) -> int:
        """The newest entry up to which everything was answered."""
        rows = self._following.view.sheet.rows
        return next((row.seq for row in reversed(rows) if row.role == "assistant"), 1)

    @property
    def shows_less(self) -> bool:
        """Whether the model is shown less than everything that was said: folds, or cuts."""
        view = self._following.view
        return bool(view.sheet.foldings) or (view.plan is not None and view.plan.shortened)

    @property
    def filled(self) -> Filled:
        """How many tokens the next request would have now, and of what."""
        return filled(self._following)

    @property
    def folding(self) -> bool:
        """Whether a fold is under way, here or in another process."""
        return self._folds.running is not None
