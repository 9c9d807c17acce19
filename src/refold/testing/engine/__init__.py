"""What every engine must do, as a suite of tests.

    class TestMyEngine(EngineConformance):
        @pytest.fixture
        async def store(self, tmp_path):
            async with SqliteStore(tmp_path / "refold.db", clock=self.clock) as store:
                yield store

        @pytest.fixture
        def new_engine(self, tmp_path):
            return lambda log, make: MyEngine(log, make, tmp_path)

`new_engine` makes an engine as another process would: those of one test share the log and whatever
else they share between processes. Some of them die: see `EngineTests.drop`. The tests run under
pytest with pytest-asyncio in its automatic mode.
"""

from refold.testing.engine.base import EngineTests, Maker, NewEngine, World
from refold.testing.engine.beginning import BeginningConformance
from refold.testing.engine.dying import DyingConformance
from refold.testing.engine.ending import ChangingConformance, EndingConformance
from refold.testing.engine.stepping import Stepper, SteppingConformance

__all__ = [
    "BeginningConformance",
    "ChangingConformance",
    "DyingConformance",
    "EndingConformance",
    "EngineConformance",
    "EngineTests",
    "Maker",
    "NewEngine",
    "Stepper",
    "SteppingConformance",
    "World",
]


class EngineConformance(
    BeginningConformance,
    EndingConformance,
    ChangingConformance,
    DyingConformance,
    SteppingConformance,
):
    """Subclass it and give it the fixtures `store` and `new_engine`."""
