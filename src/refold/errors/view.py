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

    def __init__(self, *, kept: int, limit: int, what: str = "") -> None:
        self.kept = kept
        self.limit = limit
        super().__init__(
            what
            or f"System content, tools, pins, summaries and the latest prompt alone take {kept:,} "
            f"tokens, and the limit is {limit:,}."
        )


class PromptTooLarge(ViewTooLarge):
    """The latest prompt alone exceeds the limit. The log has it; later requests leave it out."""

    code = "prompt-too-large"
    usual_fix = (
        "Send the next prompt: the long one stays in the log and is left out of the context. For "
        "the model to read it, put it into a file that a tool can read, send it in parts, or use "
        "a model with a larger window."
    )

    def __init__(self, *, seq: int, tokens: int, kept: int, limit: int) -> None:
        self.seq = seq
        self.tokens = tokens
        what = (
            f"The prompt is too long: it takes {tokens:,} tokens, and a request holds at most "
            f"{limit:,}. It was not sent. The log keeps it as entry {seq}."
        )
        super().__init__(kept=kept, limit=limit, what=what)


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
