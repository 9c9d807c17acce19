"""A stateful test of a whole store: random histories, held against plain lists.

    class TestMyStore(LogMachine.TestCase): ...

Subclass `LogMachine`, give it `new_store`, and take its `TestCase`. With `PEERS` above one, several
stores over the same data are open at once, as in several processes, and each step uses any of them.
"""

from refold.testing.machine.rules import LogMachine

__all__ = ["LogMachine"]
