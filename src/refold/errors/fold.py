"""A fold, or a note, that was asked for and not made."""

from refold.errors.root import RefoldError


class FoldError(RefoldError):
    """A fold that was asked for and not made; the view is as it was."""

    code = "fold"


class NothingToFold(FoldError):
    """Too little was said yet, or all of it must stay as it is."""

    code = "nothing-to-fold"
    usual_fix = "Go on; there is room."


class FoldUnderWay(FoldError):
    """Another fold of the session is being made."""

    code = "fold-under-way"
    usual_fix = "Wait for it, or cancel it, and ask again."


class FoldCancelled(FoldError):
    """Somebody cancelled the fold."""

    code = "fold-cancelled"
    usual_fix = "Nothing changed; ask again when you want it."


class FoldNotMade(FoldError):
    """The fold was begun and could not be finished."""

    code = "fold-not-made"
    usual_fix = "Nothing changed and nothing is lost; ask again, or fold without a model."


class NotRemembered(RefoldError):
    """A note could not be kept, so what it tells of does not leave the view by a fold."""

    code = "not-remembered"
    usual_fix = (
        "Make the folder of memory, and the files in it, writable for this user. "
        "The log keeps everything meanwhile."
    )
