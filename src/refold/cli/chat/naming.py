"""Names of new sessions."""

from datetime import datetime
from secrets import token_hex


def new_name() -> str:
    """A name that no other session has: the day, and some letters.

    It holds no word of what is said: a name stays when words are forgotten, and stands in lists, in
    logs and on command lines. Lists show the first words beside it, read from the log each time.
    """
    return f"{datetime.now().astimezone():%Y-%m-%d}-{token_hex(3)}"
