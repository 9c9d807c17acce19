"""Our own views as a policy, so that a profile is measured like any other."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from uuid import UUID

from refold.lab.reading import Reader
from refold.log import Entry, Message
from refold.view.budget import Budget
from refold.view.profiles import Profile
from refold.view.sheet import Sheet
from refold.view.tokens import Counter
from refold.view.view import Messages, View
from refold.wire import wire_for


class Projected:
    """The view that a profile gives, within a budget."""

    def __init__(
        self,
        profile: Profile,
        budget: Budget,
        counter: Counter,
        format: str = "pydantic-ai",  # noqa: A002 - the glossary's word
    ) -> None:
        self.session = View(Sheet(wire_for(format), counter), profile)
        self._budget = budget
        self._known = 0

    def view(self, messages: Sequence[bytes]) -> Messages:
        """What the profile sends, given all that was said so far."""
        self.session.extend(
            Entry(at, UUID(int=at), 0, Message.KIND, 1, payload)
            for at, payload in enumerate(messages[self._known :], self._known + 1)
        )
        self._known = len(messages)
        return self.session.request(self._budget).messages


def profiled(
    profiles: Iterable[Profile], budget: Budget, counter: Counter
) -> dict[str, Callable[[Reader], Projected]]:
    """The profiles as policies to compare, by name."""
    return {one.name: partial(_projected, one, budget, counter) for one in profiles}


def _projected(profile: Profile, budget: Budget, counter: Counter, _: Reader) -> Projected:
    return Projected(profile, budget, counter)
