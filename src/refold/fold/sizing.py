"""A fold's values for one model: what suits a large window is too much for a small one."""

from refold.view import Fold, Profile, Window

FULL = 100_000
"""From room for this many tokens of messages on, the values of a profile count as they are."""


def sized(values: Fold, room: int) -> Fold:
    """The values, with what is counted in tokens or characters brought down to a smaller room.

    The room is what instructions and tools leave of the limit: at a small window they may take most
    of it, and what suits the limit would leave a fold nothing to free.
    """
    share = max(0.0, min(1.0, room / FULL))
    keep = values.keep
    if keep.unit == "tokens":
        keep = keep.model_copy(update={"amount": int(keep.amount * share)})
    keep = keep.model_copy(update={"head_tokens": int(keep.head_tokens * share)})
    return values.model_copy(
        update={
            "keep": keep,
            "max_tokens": max(200, int(values.max_tokens * share)),
            "ledger_tokens": int(values.ledger_tokens * share),
            "user_chars": int(values.user_chars * share),
        }
    )


def while_folding(profile: Profile) -> Profile:
    """The profile of a session that folds: fixed limits are for those that cannot.

    Where few turns are too many tokens, they are reduced to text all the same.
    The past is then rewritten only where it would be cut otherwise, which is beyond the point where
    a request waits for its fold: two ways of making room at the same point would each cost a
    provider's cache.
    """
    limits = profile.window
    window = Window(read=limits.read)
    rewrite = profile.rewrite
    if not rewrite.sticky:
        window = Window(
            read=limits.read,
            max_tokens=limits.max_tokens,
            text_below=limits.text_below,
            halve=False,
        )
    if profile.rewrite.sticky and profile.trigger.hard:
        rewrite = rewrite.model_copy(update={"target": 1.0})
    return profile.model_copy(update={"window": window, "rewrite": rewrite})
