"""The root of the tree: what each error says."""

from typing import ClassVar


class RefoldError(Exception):
    """The root: `what` happened, the `fix` to try next, and a stable `code`."""

    code: ClassVar[str] = "refold"
    usual_fix: ClassVar[str] = "Please report this with the text above."

    def __init__(self, what: str, fix: str | None = None) -> None:
        self.what = what
        self.fix = fix or self.usual_fix
        super().__init__(f"{self.what} {self.fix}")
