"""Profiles: named sets of policy values.

Where the documents that Refold began from disagree, they differ here and nowhere else. Each value
can be set on its own, in any profile.
"""

from typing import Literal

from pydantic import Field

from refold.errors import InvalidSetting
from refold.view.policy_values import (
    Archive,
    Arguments,
    Emergency,
    Fit,
    Fold,
    Keep,
    Policy,
    Retention,
    Rewrite,
    Trigger,
    Trim,
    Values,
    Watch,
    Window,
)

__all__ = [
    "BALANCED",
    "COPILOT",
    "COWAGENT",
    "CO_CLI",
    "INKEEP",
    "PROFILES",
    "STATIC_MARKER",
    "Archive",
    "Arguments",
    "Emergency",
    "Fit",
    "Fold",
    "Keep",
    "Profile",
    "Retention",
    "Rewrite",
    "Trigger",
    "Trim",
    "Watch",
    "Window",
    "profile",
]


class Profile(Values):
    """A named set of policy values."""

    name: str
    budget: Policy[int] = Field(
        default=0, ge=0, description="A limit of your own, in tokens; 0 is no limit."
    )
    reserve: Policy[int] = Field(
        default=0, ge=0, description="Tokens of the window that are kept free for the answer."
    )
    trigger: Trigger = Trigger()
    fold: Fold = Fold()
    rewrite: Rewrite = Rewrite()
    trim: Trim = Trim()
    archive: Archive = Archive()
    arguments: Arguments = Arguments()
    dedupe: Policy[bool] = Field(
        default=False, description="Results that a later one repeats or replaces go."
    )
    window: Window = Window()
    fit: Fit = Fit()
    emergency: Emergency = Emergency()
    watch: Watch = Watch()
    retention: Retention = Retention()
    delegates: Policy[Literal["apart", "shared"]] = Field(
        default="shared",
        description="Delegated agents see their own work alone, or the top level beside it; who "
        "delegated sees their results alone, or all they did, as text.",
    )
    consolidate: Literal["asked", "leaving"] = Field(
        default="asked",
        description="When a session is read for the board of its branch: when a person asks for "
        "it, or also when they leave a chat.",
    )
    max_steps: Policy[int] = Field(
        default=0, ge=0, description="Steps a turn may take; for hosts that ask."
    )
    summariser: str = Field(
        default="",
        description="The model that summarises; empty: the primary one, where `fold.writer` says "
        "that a model does.",
    )


STATIC_MARKER = (
    "[Earlier conversation trimmed — {count} messages removed to stay within context budget]"
)

BALANCED = Profile(
    name="balanced",
    reserve=16_384,
    trigger=Trigger(tokens=100_000, at_least=20_000),
    fold=Fold(
        keep=Keep(head="first run", head_tokens=4_000, unit="tokens", amount=15_000, snap="turn"),
        placement="replacement",
        breadcrumb=True,
        writer="log",
        ground="check",
        coverage=0.5,
    ),
    # Measured on recorded sessions: names cost little and keep most of what is referred to later,
    # and one thorough rewrite costs less than several that each free a little.
    rewrite=Rewrite(low_water=0.3),
    archive=Archive(min_chars=150, names=100, recent=0.1),
    arguments=Arguments(max_chars=5000, keep=100, names=0.3),
    dedupe=True,
    fit=Fit(low_water=0.8, marker=STATIC_MARKER),
    watch=Watch(share=0.1),
    delegates="apart",
)
CO_CLI = Profile(
    name="co-cli",
    trigger=Trigger(soft=0, hard=0, messages=40),
    fold=Fold(keep=Keep(head="first run", unit="messages", amount=20, least=4), apply="inline"),
    rewrite=Rewrite(sticky=False),
    trim=Trim(max_chars=2000, protect="last", inflate=True),
    window=Window(max_messages=40),
    fit=Fit(marker=STATIC_MARKER),
)
INKEEP = Profile(
    name="inkeep",
    trigger=Trigger(soft=0.5, hard=0.91, generation=((0, 0.75), (100_000, 0.83), (500_000, 0.91))),
    fold=Fold(keep=Keep(unit="turns", least=1), apply="inline", references=True),
    rewrite=Rewrite(sticky=False),
    archive=Archive(min_chars=2000, excerpt=200, recent=0),
    window=Window(recent_messages=50, recent_tokens=8000, read=10_000),
)
COPILOT = Profile(
    name="copilot",
    fold=Fold(placement="replacement", user_chars=30_000, user_messages=20, user_clip=4_000),
    rewrite=Rewrite(sticky=False),
    fit=Fit(low_water=0.95),
    consolidate="leaving",
)
COWAGENT = Profile(
    name="cowagent",
    trigger=Trigger(soft=0, hard=0, turns=20, tokens=50_000),
    fold=Fold(keep=Keep(unit="turns", amount=0.5, least=1), placement="merge", apply="next turn"),
    rewrite=Rewrite(sticky=False),
    trim=Trim(
        max_chars=20_000, style="head-tail", marker="\n[…truncated, {length} chars total…]\n"
    ),
    window=Window(max_turns=20, max_tokens=50_000),
    emergency=Emergency(result_chars=10_000, user_chars=10_000, turns=5),
    retention=Retention(days=30),
    max_steps=15,
)

PROFILES = {one.name: one for one in (BALANCED, CO_CLI, COPILOT, COWAGENT, INKEEP)}
"""The profiles that come with Refold, by name."""


def profile(name: str) -> Profile:
    """The profile of that name."""
    try:
        return PROFILES[name]
    except KeyError:
        raise InvalidSetting(
            f"There is no profile {name!r}.", f"Use one of {', '.join(PROFILES)}."
        ) from None
