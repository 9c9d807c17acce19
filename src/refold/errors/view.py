"""What the model would see."""

from refold.errors.root import RefoldError


class ViewError(RefoldError):
    """Something about what the model would see."""

    code = "view"


class ViewTooLarge(ViewError):
    """What must be kept alone exceeds the limit: nothing that may be left out would help."""

    code = "view-too-large"
    usual_fix = (
        "Shorten the instructions, the tool definitions or the prompt, unpin something, "
        "or use a model with a larger window."
    )

    def __init__(self, *, kept: int, limit: int) -> None:
        self.kept = kept
        self.limit = limit
        super().__init__(
            f"System content, tools, pins, summaries and the latest prompt alone take {kept:,} "
            f"tokens, and the limit is {limit:,}."
        )


class WindowExceeded(ViewError):
    """The provider refused the request for its length, however little was sent."""

    code = "window-exceeded"
    usual_fix = (
        "Tell how large the model's window is (`models` in the settings), shorten the "
        "instructions, the tool definitions or the prompt, or use a model with a larger window. "
        "Everything that was said is kept."
    )


class UnknownFormat(ViewError):
    """No wire describes the session's message format."""

    code = "unknown-format"
    usual_fix = "Use one of the formats that `refold.wire` names, or write a wire for it."


class Unrebuildable(ViewError):
    """The request cannot be made again: what it was made of was forgotten, or is not the same."""

    code = "unrebuildable"
    usual_fix = "Nothing can bring it back; the record still says when, how and for which model."
