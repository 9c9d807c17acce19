"""What a conversation is told of earlier ones: the board, as it stood when it began."""

from pydantic_ai.models import Model, infer_model

from refold.errors import InvalidInput
from refold.integrations.pydantic_ai.places import Place
from refold.log import Log
from refold.memory import Board, Consolidated, consolidate
from refold.models.catalogue import Overrides


async def told(board: Board | None, log: Log, place: Place) -> str | None:
    """The words for a run at this place; delegated work is told by who delegates."""
    if board is None or place.delegated:
        return None
    begun = (await log.info(place.session)).created_at
    return (await board.stand(before=begun)).text or None


async def consolidated(
    board: Board | None, log: Log, session: str, model: Model | str, models: Overrides
) -> Consolidated:
    """What came of having this model read a session for the board."""
    if board is None:
        raise InvalidInput(
            "There is no board to put anything on.",
            "Give one: Refold(board=branch_of(Path.cwd())).",
        )
    from refold.models.rem_agent import RemAgent  # noqa: PLC0415 - only who asks for it needs it

    return await consolidate(log, session, board, RemAgent(infer_model(model), models))
