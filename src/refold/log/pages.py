"""Where a page of the list of sessions begins, as an opaque text."""

from refold.errors import InvalidInput

END = (2**63 - 1, 2**63 - 1)
"""After every session there can be."""


def page_after(updated_at: int, key: int) -> str:
    """The page that begins after this session."""
    return f"{updated_at}.{key}"


def last_shown(page: str | None) -> tuple[int, int]:
    """The last use and the key of the session that a page begins after."""
    if page is None:
        return END
    at, _, key = page.partition(".")
    try:
        return int(at), int(key)
    except ValueError as error:
        raise InvalidInput(f"{page!r} is no page of a list.", "Pass what `next` said.") from error
