"""What a command is about: the session, and the profile."""

from typing import Annotated

import typer

from refold.cli.completing import profiles, session_names
from refold.errors import SessionNotFound
from refold.log import Log
from refold.log.names import check_name

SessionName = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="The session's name.",
        show_default=False,
        autocompletion=session_names,
    ),
]
SessionChoice = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION]",
        help="The session's name; else the one used last.",
        show_default=False,
        autocompletion=session_names,
    ),
]
ProfileChoice = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="The profile, whatever the settings say.",
        autocompletion=profiles,
    ),
]


async def chosen(log: Log, session: str | None) -> str:
    """The session of this name; where nobody names one, the one used last."""
    if session is not None:
        check_name(session)
        return session
    page = await log.sessions(limit=1)
    for one in page.sessions:
        return one.session
    raise SessionNotFound("There is no session yet.")
