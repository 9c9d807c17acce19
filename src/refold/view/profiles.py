"""Profiles: named sets of policy values.

Where the documents that Refold began from disagree, they differ here and nowhere else. Each value
can be set on its own, in any profile.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Annotated, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.fields import FieldInfo

from refold.errors import InvalidSetting

T = TypeVar("T")
Economics = Literal["off", "open-fold", "strict"]
"""Whether debt decides: not at all; so that one fold is open; or so that none is ever dearer."""
_LEAST_RESTORED = 3


class ProjectRight(Enum):
    """What the files of a project may do about a setting, trusted or not.

    A project's files come with a clone, so anybody may have written them. A setting that declares
    nothing is closed to them: whoever adds one must say so to open it.
    """

    VALUE = "value"
    """Set any value: it only changes what is kept of a conversation, never where it goes."""
    PROFILE = "profile"
    """Choose between the values that Refold ships, by naming a profile."""
    NONE = "none"
    """Nothing."""


Policy = Annotated[T, ProjectRight.VALUE]
"""A setting that a project's files may set."""
Shipped = Annotated[T, ProjectRight.PROFILE]
"""A setting that a project's files may only choose, with a profile."""


def project_right(field: FieldInfo) -> ProjectRight:
    """What a project's files may do about this setting."""
    declared = (item for item in field.metadata if isinstance(item, ProjectRight))
    return next(declared, ProjectRight.NONE)


class Values(BaseModel):
    """Values that belong together; one that nobody knows is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Trigger(Values):
    """When the past is folded: any one of these suffices, 0 means never."""

    soft: Policy[float] = Field(
        default=0.8, ge=0, le=1, description="Share of the limit that starts a fold."
    )
    hard: Policy[float] = Field(
        default=0.95, ge=0, le=1, description="Share of the limit that waits for it."
    )
    messages: Policy[int] = Field(default=0, ge=0, description="Fold when there are more messages.")
    turns: Policy[int] = Field(default=0, ge=0, description="Fold when there are more turns.")
    tokens: Policy[int] = Field(default=0, ge=0, description="Fold when there are more tokens.")
    savings: Policy[float] = Field(
        default=0,
        ge=0,
        description="Fold as soon as reading what a fold would leave out has cost this many times "
        "what the fold costs, or at once where it costs nothing; the other values are ceilings "
        "then. 0: they alone decide.",
    )
    cache_seconds: Policy[int] = Field(
        default=300,
        ge=0,
        description="How long the provider keeps what it has cached, for `savings`; 0: for ever.",
    )
    generation: Policy[tuple[tuple[int, float], ...]] = Field(
        default=(),
        description="For delegated agents, by window size (from this many tokens on, this share): "
        "at this share of the limit, what their tools returned becomes findings written by the "
        "summarizer, or excerpts without one.",
    )
    at_least: Policy[int] = Field(
        default=0,
        ge=0,
        description="Fewer tokens wait for `hard`: short sessions are left alone. Where the limit "
        "is so small that this would leave less than a tenth of it below `hard`, it does not "
        "count; a limit in `tokens` holds for them too.",
    )
    min_messages: Policy[int] = Field(
        default=4, ge=0, description="Fewer messages are never folded by themselves."
    )
    min_messages_manual: Policy[int] = Field(
        default=2, ge=0, description="Fewer are not folded when asked to."
    )
    after_request: Policy[bool] = Field(
        default=False,
        description="Whether a fold that is asked for needs a request before it: without one, the "
        "instructions that the model works under are not known.",
    )
    memory: Policy[float] = Field(
        default=0,
        ge=0,
        le=1,
        description="Share of the machine's memory, or of what the process may have, that it takes "
        "up itself: then its sessions fold once. 0 is never.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> "Trigger":
        if self.soft and self.hard and not self.soft < self.hard:
            raise InvalidSetting(
                f"trigger.soft is {self.soft} and trigger.hard {self.hard}.",
                "Set trigger.soft below trigger.hard.",
            )
        return self


class Keep(Values):
    """What a fold keeps: the beginning and the newest messages."""

    head: Policy[Literal["first run", "none"]] = Field(
        default="none", description="Which beginning stays: up to the first answer, or none."
    )
    head_tokens: Policy[int] = Field(
        default=0,
        ge=0,
        description="Of a longer first run only the first prompt stays; 0 is no limit.",
    )
    unit: Policy[Literal["messages", "turns", "tokens", "none"]] = Field(
        default="none", description="What `amount` counts; none: nothing but the open step."
    )
    amount: Policy[float] = Field(
        default=0,
        ge=0,
        description="How much of the newest stays; of turns, their share; of messages, a number or "
        "a share of `trigger.messages`. Never more than half of a limit in `trigger`.",
    )
    least: Policy[int] = Field(
        default=0, ge=0, description="Of messages or turns, at least so many."
    )
    snap: Policy[Literal["step", "turn"]] = Field(
        default="step", description="Where the tail begins: with a step, or a turn if one is near."
    )


class Fold(Values):
    """What a fold shows instead of the messages that it replaces."""

    keep: Keep = Keep()
    placement: Policy[Literal["message", "replacement", "merge"]] = Field(
        default="message",
        description="The summary as a message with a marker, as a full replacement, or in front of "
        "the first prompt that stays.",
    )
    apply: Policy[Literal["inline", "background", "next turn"]] = Field(
        default="background", description="Whether a request waits for a fold that it started."
    )
    wait: Policy[float] = Field(
        default=60, ge=0, description="Seconds that a request waits for a fold at most."
    )
    breadcrumb: Policy[bool] = Field(
        default=False,
        description="Without a model, fold to what the log itself says, rather than not at all.",
    )
    writer: Shipped[Literal["log", "model"]] = Field(
        default="model",
        description="What writes summaries if no summarizer is named: the log itself, without a "
        "model, or the primary model.",
    )
    ground: Shipped[Literal["check", "report"]] = Field(
        default="report",
        description="What a model wrote is put right by the log before it is used, or what is "
        "wrong with it is only written down.",
    )
    input: Shipped[Literal["transcript", "messages"]] = Field(
        default="transcript",
        description="What a summarizer reads: the messages quoted in a prompt, or as a history of "
        "its own, where they fit its window and its words are used as they are.",
    )
    coverage: Policy[float] = Field(
        default=0,
        ge=0,
        le=1,
        description="A model's summary must hold this share of the salient names that one from the "
        "log would hold; else that one is used.",
    )
    call_limit: Policy[float] = Field(
        default=120, gt=0, description="Seconds that one call of the summarizer may take."
    )
    system_chars: Policy[int] = Field(
        default=0,
        ge=0,
        description="Characters of the instructions and system content in force that a summarizer "
        "is given, apart from what it summarizes; 0: none.",
    )
    references: Policy[bool] = Field(
        default=False,
        description="Beside a model's words, name the large results that were folded, by part.",
    )
    max_tokens: Policy[int] = Field(default=8_000, ge=200, description="What a fold shows at most.")
    ledger_tokens: Policy[int] = Field(
        default=4_500, ge=0, description="Of that, for names of what was folded."
    )
    region_tokens: Policy[int] = Field(
        default=0,
        ge=0,
        description="Beside that, for regions of files that are being worked on, letter by letter.",
    )
    user_chars: Policy[int] = Field(
        default=12_000,
        ge=0,
        description="Characters of the user's own messages that stay, within `max_tokens`.",
    )
    user_messages: Policy[int] = Field(default=60, ge=0, description="How many of them.")
    user_clip: Policy[int] = Field(default=700, ge=40, description="Characters of a single one.")


class Rewrite(Values):
    """When what was already sent may change, and how much must then be gained."""

    sticky: Policy[bool] = Field(
        default=True,
        description="Decisions stay until the next rewrite, so a provider's cache stays warm.",
    )
    target: Policy[float] = Field(
        default=0.5, gt=0, le=1, description="Share of the limit above which the past is rewritten."
    )
    target_tokens: Policy[int] = Field(
        default=0, ge=0, description="The same in tokens; the smaller one counts."
    )
    at_least: Policy[int] = Field(
        default=20_000, ge=0, description="Smaller views are left alone as long as they fit."
    )
    low_water: Policy[float] = Field(
        default=0.5, gt=0, le=0.9, description="Share of the target that a rewrite cuts to."
    )


class Trim(Values):
    """Long tool results of earlier turns, cut."""

    max_chars: Policy[int] = Field(
        default=0, ge=0, description="Longer tool results are cut; 0 leaves them."
    )
    style: Policy[Literal["head", "head-tail"]] = Field(
        default="head", description="Which end is kept."
    )
    marker: Shipped[str] = Field(
        default="\n[…truncated, {length} chars total]",
        description="What marks the cut; {length} is known.",
    )
    protect: Policy[Literal["last", "turn"]] = Field(
        default="turn", description="What is never cut: the last messages, or the current turn."
    )
    last: Policy[int] = Field(default=2, ge=0, description="How many last messages are safe.")
    inflate: Policy[bool] = Field(
        default=False, description="Cut even where the marker makes it longer."
    )


class Archive(Values):
    """Large tool results of earlier turns, replaced by a short reference.

    Where the model has a tool for that, it can read them by the part that the reference names.
    """

    min_chars: Policy[int] = Field(
        default=0, ge=0, description="Larger results are archived; 0 leaves them."
    )
    excerpt: Policy[int] = Field(
        default=0, ge=0, description="Characters of the beginning that stay."
    )
    names: Policy[int] = Field(
        default=0, ge=0, description="Characters of names from the result that stay."
    )
    recent: Policy[float] = Field(
        default=0.2, ge=0, le=1, description="Share of the target at the end that is left alone."
    )


class Arguments(Values):
    """Long arguments of old calls, clipped value by value."""

    max_chars: Policy[int] = Field(
        default=0, ge=0, description="Longer values are clipped; 0 leaves them."
    )
    keep: Policy[int] = Field(
        default=0, ge=0, description="Characters of a clipped value that stay."
    )
    names: Policy[float] = Field(
        default=0, ge=0, le=1, description="Share of a clipped value that may stay as names."
    )


class Window(Values):
    """Fixed limits: requests stay within them, summarized or not.

    Where folds are made, a fold makes room first. What it cannot, or not in time, is left out. The
    newest messages of `recent_messages` and `recent_tokens` are for when nothing summarizes.
    """

    max_messages: Policy[int] = Field(
        default=0,
        ge=0,
        description="More messages: the first run and the newest stay; 0 is no limit.",
    )
    max_turns: Policy[int] = Field(
        default=0, ge=0, description="More turns: the older half goes; 0 is no limit."
    )
    max_tokens: Policy[int] = Field(
        default=0,
        ge=0,
        description="More tokens: few turns are reduced to text, many halved; 0: no limit.",
    )
    text_below: Policy[int] = Field(
        default=5, ge=1, description="Fewer turns than this are reduced to text."
    )
    recent_messages: Policy[int] = Field(
        default=0, ge=0, description="Only the newest are seen; 0 is no limit."
    )
    recent_tokens: Policy[int] = Field(
        default=0, ge=0, description="Of those, at most this many tokens before the latest prompt."
    )
    read: Policy[int] = Field(
        default=0, ge=0, description="How many messages are read at all; 0 is no limit."
    )

    @property
    def limits(self) -> bool:
        return any((self.max_messages, self.max_turns, self.max_tokens, self.rolling))

    @property
    def rolling(self) -> bool:
        """Whether each request sees only the newest messages."""
        return bool(self.recent_messages or self.recent_tokens)


class Fit(Values):
    """What a request leaves out when it would not fit otherwise."""

    low_water: Policy[float] = Field(
        default=0.9, gt=0, le=1, description="Share of the limit it cuts to."
    )
    marker: Shipped[str] = Field(
        default="", description="What replaces the messages left out; {count} is their number."
    )
    orphans: Policy[Literal["drop", "pass"]] = Field(
        default="pass",
        description="In a gateway, tool results without their call where nothing else is changed: "
        "drop them, or pass them on for the provider to judge. Elsewhere they are never sent.",
    )


class Watch(Values):
    """What is done about the same files and searches read again after a fold."""

    share: Policy[float] = Field(
        default=0,
        ge=0,
        le=0.5,
        description="Share of the limit that results read again may take up, kept through folds; "
        "0: they are only counted.",
    )


class Emergency(Values):
    """What happens after a provider refused a request for its length: it is cut hard, at once.

    Before that, everything is remembered, where there is a memory. When the provider refuses that
    too, only the latest prompt is sent, and the view starts afresh with it.
    """

    result_chars: Policy[int] = Field(
        default=0, ge=0, description="Longer tool results are cut, the newest too; 0 leaves them."
    )
    user_chars: Policy[int] = Field(
        default=0, ge=0, description="Longer prompts are cut, but the latest; 0 leaves them."
    )
    turns: Policy[int] = Field(default=0, ge=0, description="How many turns stay; 0 is no limit.")

    @property
    def on(self) -> bool:
        """Whether a refusal is answered in this way at all."""
        return bool(self.result_chars or self.user_chars or self.turns)


class Retention(Values):
    """How long sessions are kept that nobody uses.

    A chat applies it when it opens, a service when it starts and every hour.
    """

    days: int = Field(
        default=0, ge=0, description="Sessions unused for more days are forgotten; 0: never."
    )


class StoreSettings(Values):
    """How the store is looked after. `REFOLD_STORE` itself is the address of the store."""

    forget_journal: str = Field(
        default="",
        description="The file that lists what is forgotten, by ids alone, for `refold store "
        "forget-again` after a restore: an absolute path, outside the store's backups. Empty: "
        "beside an SQLite file, and none for PostgreSQL.",
    )

    @field_validator("forget_journal")
    @classmethod
    def _absolute(cls, value: str) -> str:
        """Elsewhere, each program would write into the folder that it was started in."""
        if value and not value.startswith(("/", "~")):
            raise ValueError("it needs an absolute path, or one that begins with ~")
        return value


class Memory(Values):
    """What outlives a session: notes on what leaves the view, in one file a day, and their search.

    The files contain the conversation, so a project's files can't switch any of this on.
    """

    daily: bool = Field(
        default=False,
        description="Write a note of each summary, and of what leaves the view without one, to "
        "`memory/YYYY-MM-DD.md`.",
    )
    folder: str = Field(
        default="",
        description="The folder in which `memory` is made; empty: Refold's data folder. Tenants "
        "other than the default have a folder each in it.",
    )
    search: bool = Field(
        default=False,
        description="Offer the model a tool that searches the daily notes and the board.",
    )


class Workspaces(Values):
    """A folder for each session: checkpoints for people, and what they know of the work.

    Refold writes `checkpoints/NNN-title.md`, `checkpoints/index.md` and `workspace.yaml`. Folds
    show what `plan.md`, `todo.md`, `agent.md` and `skills/NAME.md` there say.
    """

    keep: Shipped[Literal["never", "chat", "always"]] = Field(
        default="never", description="Whether sessions have one: never, in a chat, or everywhere."
    )
    folder: str = Field(
        default="",
        description="Where they are; empty: in `workspaces` of the user's data folder.",
    )


class CommandHook(Values):
    """A command that is run, with JSON on its standard input."""

    command: str = Field(min_length=1)
    """For the shell."""
    timeout: float = Field(default=60, gt=0)
    """Seconds; then it is ended, and counts for nothing."""
    trigger: Literal["", "manual", "auto"] = ""
    """For which folds it is; empty: for all."""


class Hooks(Values):
    """Commands of the user, run when something happens."""

    pre_compact: tuple[CommandHook, ...] = Field(
        default=(),
        description="Commands that run before a fold, as preCompact hooks of Claude Code and "
        "Copilot: JSON on standard input, exit code 2 or a JSON decision blocks it.",
    )

    @field_validator("pre_compact", mode="before")
    @classmethod
    def _hooks(cls, value: object) -> object:
        return [hook for item in _list(value) for hook in _hook_forms(item)]


def _list(value: object) -> list[object]:
    return [*cast("Sequence[object]", value)] if isinstance(value, list | tuple) else [value]


def _hook_forms(value: object, matcher: str = "") -> Iterator[object]:
    """The hook, or those of an entry, in any of the forms that other tools write."""
    if isinstance(value, str):
        yield {"command": value, "trigger": matcher}
        return
    entry: Mapping[str, object] = {}
    if isinstance(value, Mapping):
        entry = cast("Mapping[str, object]", value)
    if "hooks" in entry:  # Claude Code
        for hook in _list(entry["hooks"]):
            yield from _hook_forms(hook, str(entry.get("matcher") or ""))
    elif entry.get("type") == "command":  # Claude Code and Copilot
        command = entry.get("command") or entry.get("bash")
        limit = entry.get("timeout") or entry.get("timeoutSec") or 60
        yield {"command": command, "timeout": limit, "trigger": matcher}
    else:
        yield value


class Profile(Values):
    """A named set of policy values."""

    name: str
    budget: Policy[int] = Field(
        default=0, ge=0, description="A limit of your own, in tokens; 0 is no limit."
    )
    reserve: Policy[int] = Field(
        default=0, ge=0, description="Tokens of the window that are kept free for the answer."
    )
    economics: Policy[Economics] = Field(
        default="off",
        description="What folding may cost more than sending everything. open-fold: one fold at a "
        "time may be ahead of what it saves; a fold that makes the next request dearer waits "
        "until the ones before have paid, and where rereads cost too much, folds are undone. "
        "strict: a fold is only made where it is not dearer, or paid from what was saved. off: no "
        "account is kept. It takes known prices, and a profile in which nothing but folds changes "
        "what was sent. Folds that the window or a limit of your own forces are always made, and "
        "those that you ask for.",
    )
    trigger: Trigger = Trigger()
    fold: Fold = Fold()
    rewrite: Rewrite = Rewrite()
    trim: Trim = Trim()
    archive: Archive = Archive()
    arguments: Arguments = Arguments()
    results: Policy[Literal["native", "markdown"]] = Field(
        default="native",
        description="How results of earlier turns are shown: as their tools returned them, or as "
        "Markdown with the tool's name and input.",
    )
    dedupe: Policy[bool] = Field(
        default=False, description="Results that a later one repeats or replaces go."
    )
    window: Window = Window()
    fit: Fit = Fit()
    emergency: Emergency = Emergency()
    watch: Watch = Watch()
    retention: Retention = Retention()
    store: StoreSettings = StoreSettings()
    memory: Memory = Memory()
    auto_restore: bool = Field(
        default=False,
        description="A chat without a session name continues the newest session of its profile.",
    )
    restore: Policy[Literal["replay", "text_turns"]] = Field(
        default="replay",
        description="What a program that starts again shows of a session: what was shown before, "
        "or the newest max(3, window.max_turns // 6) turns, of which only the user's text and the "
        "reply stay.",
    )
    workspace: Workspaces = Workspaces()
    hooks: Hooks = Hooks()
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
        default=0, ge=0, description="Requests to the model that a turn may take; 0: no limit."
    )
    summarizer: Shipped[str] = Field(
        default="",
        description="The model that summarizes, by its name; `primary`: the session's own; `auto`: "
        "the session's own on its provider's cache, or a cheaper one of the same provider with a "
        "transcript, whichever costs less; empty: the primary one, where `fold.writer` says that a "
        "model does.",
    )

    @model_validator(mode="after")
    def _moves_nothing_else(self) -> "Profile":
        if self.economics == "strict" and not self.keeps_account:
            raise InvalidSetting(
                f"economics is strict, and the profile {self.name!r} also changes what was sent by "
                "other rules.",
                "Use the profile balanced, or set rewrite.sticky = true, results = native, "
                "trim.max_chars = 0 and no limits in window.",
            )
        return self

    @property
    def keeps_account(self) -> bool:
        """Whether debt decides: only where nothing but folds moves what was sent."""
        others = self.trim.max_chars or self.window.limits or self.results != "native"
        return self.economics != "off" and self.rewrite.sticky and not others

    @property
    def set_limits(self) -> frozenset[str]:
        """The trigger's limits that somebody has set: they hold, whatever folds have cost."""
        own, shipped = self.trigger, BALANCED.trigger
        values = {
            "soft": (own.soft, shipped.soft),
            "messages": (own.messages, shipped.messages),
            "turns": (own.turns, shipped.turns),
            "tokens": (own.tokens, shipped.tokens),
        }
        return frozenset(name for name, (mine, its) in values.items() if mine and mine != its)

    @property
    def restored_turns(self) -> int:
        """How many turns a program that starts again shows, as text; 0: all that were shown."""
        turns = self.window.max_turns or self.trigger.turns
        return max(_LEAST_RESTORED, turns // 6) if self.restore == "text_turns" else 0


STATIC_MARKER = (
    "[Earlier conversation trimmed — {count} messages removed to stay within context budget]"
)

BALANCED = Profile(
    name="balanced",
    reserve=16_384,
    economics="open-fold",
    trigger=Trigger(tokens=100_000, at_least=20_000, savings=1),
    fold=Fold(
        keep=Keep(head="first run", head_tokens=4_000, unit="tokens", amount=8_000, snap="turn"),
        placement="replacement",
        breadcrumb=True,
        writer="log",
        ground="check",
        coverage=0.5,
        # Only `max_tokens` limits the user's words: what names and facts leave of it is theirs.
        max_tokens=12_000,
        ledger_tokens=5_000,
        region_tokens=28_000,
        user_chars=40_000,
        user_messages=1_000,
        user_clip=40_000,
        wait=5,
    ),
    summarizer="auto",
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
    fold=Fold(keep=Keep(head="first run", unit="messages", amount=0.5, least=4), apply="inline"),
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
    results="markdown",
    window=Window(recent_messages=50, recent_tokens=8000, read=10_000),
    fit=Fit(marker=STATIC_MARKER),
)
COPILOT = Profile(
    name="copilot",
    trigger=Trigger(after_request=True, memory=0.7),
    fold=Fold(
        placement="replacement",
        system_chars=16_000,
        user_chars=30_000,
        user_messages=20,
        user_clip=4_000,
    ),
    rewrite=Rewrite(sticky=False),
    fit=Fit(low_water=0.95, marker=STATIC_MARKER, orphans="drop"),
    workspace=Workspaces(keep="chat"),
    consolidate="leaving",
)
COWAGENT = Profile(
    name="cowagent",
    trigger=Trigger(soft=0, hard=0, turns=20, tokens=50_000),
    fold=Fold(keep=Keep(unit="turns", amount=0.5, least=1), placement="merge", apply="next turn"),
    rewrite=Rewrite(sticky=False),
    trim=Trim(
        max_chars=20_000,
        style="head-tail",
        marker="\n[…truncated, {length} chars total…]\n",
        inflate=True,
    ),
    window=Window(max_turns=20, max_tokens=50_000),
    emergency=Emergency(result_chars=10_000, user_chars=10_000, turns=5),
    retention=Retention(days=30),
    memory=Memory(daily=True, search=True),
    auto_restore=True,
    restore="text_turns",
    max_steps=15,
)

PROFILES = {each.name: each for each in (BALANCED, CO_CLI, COPILOT, COWAGENT, INKEEP)}
"""The profiles that come with Refold, by name."""


def profile(name: str) -> Profile:
    """The profile of that name."""
    try:
        return PROFILES[name]
    except KeyError:
        raise InvalidSetting(
            f"There is no profile {name!r}.", f"Use one of {', '.join(PROFILES)}."
        ) from None
