"""What every store must do, as a suite of tests.

    class TestMyStore(LogConformance):
        @pytest.fixture
        async def store(self, tmp_path):
            async with MyStore(tmp_path / "file", clock=self.clock) as store:
                yield store

The tests run under pytest with pytest-asyncio in its automatic mode.
"""

from refold.testing.conformance.appending import AppendingConformance
from refold.testing.conformance.forgetting import ForgettingConformance
from refold.testing.conformance.marking import MarkingConformance
from refold.testing.conformance.reading import SearchingConformance, ViewingConformance
from refold.testing.conformance.sessions import SessionsConformance
from refold.testing.conformance.totals import TotalsConformance

__all__ = [
    "AppendingConformance",
    "ForgettingConformance",
    "LogConformance",
    "MarkingConformance",
    "SearchingConformance",
    "SessionsConformance",
    "TotalsConformance",
    "ViewingConformance",
]


class LogConformance(
    AppendingConformance,
    ViewingConformance,
    SessionsConformance,
    ForgettingConformance,
    SearchingConformance,
    MarkingConformance,
    TotalsConformance,
):
    """Subclass it and give it the fixture `store`; use `self.clock` as the store's clock."""
