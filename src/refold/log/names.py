"""Names of sessions and tenants."""

from refold.errors import InvalidInput

LONGEST_NAME = 200


def check_name(name: str, what: str = "session") -> None:
    """Refuse a name that a store, a file or a shell could not carry."""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise InvalidInput(
            f"{name[:40]!r} is no name for a {what}.",
            f"Use 1 to {LONGEST_NAME} printable characters, without spaces at the ends.",
        )
