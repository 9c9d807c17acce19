"""The order of `pytest --shuffle=SEED`: of the files, and of the tests within each.

The tests of a file stay together, for what is made once for a file would else be made for each.
The place of a test follows from its name and the seed alone. So a few tests are run in the order
that they have among all, and a failure can be looked into without the whole suite.
"""

from hashlib import sha256


def place_in_order(name: str, seed: int) -> tuple[bytes, bytes]:
    """What to sort a test by; its name begins with its file."""
    file = name.partition("::")[0]
    return _drawn(file, seed), _drawn(name, seed)


def _drawn(name: str, seed: int) -> bytes:
    return sha256(f"{seed} {name}".encode()).digest()
