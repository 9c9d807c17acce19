"""Addresses of stores, as they may be shown."""


def is_clear(address: str) -> bool:
    """Whether it is plain where the password ends and the host begins: at the only `@`."""
    return "://" not in address or address.partition("?")[0].count("@") <= 1


def without_password(address: str) -> str:
    """The address as it may be shown, in logs too: without who is let in, and how."""
    before, at, place = address.rpartition("@")
    scheme, slashes, _ = before.partition("://")
    begin = (f"{scheme}{slashes}" if slashes and ":" not in scheme else "") + ("…@" if at else "")
    place, asks, _ = place.partition("?")
    return f"{begin}{place}" + ("?…" if asks else "")
