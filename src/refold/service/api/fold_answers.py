"""What the API answers about folds."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from refold.fold.preview import Preview as FoldPreview
from refold.service.api.answers import Answer, Span, Text
from refold.session import Compacted


class Fold(Answer):
    """A fold on the session's line."""

    fold: UUID
    seq: int = Field(description="The entry that completed it, or began it if it is under way.")
    at: datetime
    state: Literal["stands", "beneath", "under way"] = Field(
        description="`beneath`: a later fold stands for it too."
    )
    spans: list[Span]
    by: Text = Field(description="Who wrote the summary.")
    title: Text
    text: Text = Field(description="The summary.")
    messages: int
    tokens: int = Field(description="What it stands for would cost in a request.")


class Folds(Answer):
    """The folds on the session's line, oldest first; entries of kind `fold.*` tell of others."""

    folds: list[Fold]


class Folded(Answer):
    """What came of a fold that was asked for."""

    fold: UUID
    state: Literal["completed", "under way"]
    messages_removed: int | None = None
    tokens_removed: int | None = None
    title: Text = ""
    text: Text = ""
    by: Text = ""

    @classmethod
    def of(cls, done: Compacted) -> "Folded":
        """What was done, as an answer has it."""
        return cls(
            fold=done.fold,
            state="completed",
            messages_removed=done.messages_removed,
            tokens_removed=done.tokens_removed,
            title=done.summary.title,
            text=done.summary.text or done.summary.words,
            by=done.summary.by,
        )


class Cancelled(Answer):
    """Whether the fold was given up; one that had ended stays as it is."""

    fold: UUID
    cancelled: bool


class Preview(Answer):
    """What a fold would do, with the summary that the log itself gives."""

    spans: list[Span]
    messages: int
    kept: int
    before: int = Field(description="Tokens of the view now.")
    after: int = Field(description="Tokens of the view then.")
    text: Text = Field(description="What would be shown instead.")
    lost: int = Field(description="How many names would be found in the log only.")
    names: list[Text] = Field(description="The weightiest of them.")
    cost_before: float | None
    cost_after: float | None
    cost_once: float | None

    @classmethod
    def of(cls, found: FoldPreview) -> "Preview":
        """The preview as an answer has it."""
        told = found._asdict()
        told["spans"] = [Span.of(one) for one in found.spans]
        return cls(**told)
