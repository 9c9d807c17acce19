"""Facts that later steps of a scripted task need, what is asked of them, and near misses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

from benchmarks.task_words import Vocabulary

Kind = Literal["value", "newest value", "rule", "exact text", "thread"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
Area = Literal["coding", "support", "research"]
AREAS: Final[tuple[Area, ...]] = get_args(Area)
Speaker = Literal["user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Question:
    """What the user asks for, and how to look for it; not what the answer is."""

    kind: Kind
    ask: str
    words: tuple[str, ...]
    """The answer is on a line with all of these; the first is what it is about."""
    shape: str
    """A regular expression, whose group is the answer."""
    tool: str
    """What the model calls with the answer."""
    source: str = ""
    """A regular expression for the name of a file or document that can be read again."""
    reader: str = ""
    """The tool that reads it."""
    known: bool = True
    """Whether the question itself tells that there is something to look for."""
    done: str = ""
    """Of a thread, the word with which an item is reported as finished."""


@dataclass(frozen=True, slots=True)
class Need:
    """A question with its answer, which only the world knows."""

    question: Question
    answer: str


class Plant(NamedTuple):
    """A fact to be said: where in the session, as a share of it, by whom, and what."""

    place: float
    speaker: Speaker
    text: str
    document: str = ""
    """The file or document that a tool's text is from; it can be read again."""


class Case(NamedTuple):
    plants: tuple[Plant, ...]
    needs: tuple[Need, ...]


# Facts and what is asked of them, kind by kind


def _value(area: Area, words: Vocabulary) -> Case:
    """A value that is said once, among others of its form."""
    name = words.tenant()
    speaker, fact, shape, about, ask, tool = words.rng.choice(_VALUES[area])
    value = _amount(shape, words)
    text = fact.format(name=name, value=value)
    if speaker == "tool":
        lines = [fact.format(name=each, value=_amount(shape, words)) for each in words.others]
        lines.insert(words.rng.randrange(len(lines)), text)
        text = "\n".join(lines)
    else:
        near = fact.format(name=words.others[0], value=_amount(shape, words))
        text = f"{near} {text}" if speaker == "assistant" else text
    question = Question("value", ask.format(name=name), (name, *about), _SHAPES[shape], tool)
    return Case((Plant(words.rng.uniform(0.08, 0.4), speaker, text),), (Need(question, value),))


_SHAPES: Final = {
    "ms": r"(\d+\.\d) ?ms",
    "rows": r"(\d{4,5}) rows",
    "clock": r"\b(\d\d:\d\d)\b",
    "euros": r"(\d+\.\d\d) euros",
    "number": r"\b(RM-\d{6})\b",
    "share": r"\b(0\.\d{3})\b",
    "people": r"(\d{3,4}) (?:people|participants)",
    "seconds": r"\b(\d+) (?:seconds|s)\b",
    "days": r"\b(\d+) days",
    "percent": r"\b(\d+) ?(?:percent|%)",
}


def _amount(shape: str, words: Vocabulary) -> str:
    rng = words.rng
    minutes = rng.choice([5, 10, 20, 35, 40, 50])
    amounts = {
        "ms": f"{rng.randrange(20, 900)}.{rng.randrange(10)}",
        "rows": f"{rng.randrange(1_000, 60_000)}",
        "clock": f"{rng.randrange(24):02}:{minutes:02}",
        "euros": f"{rng.randrange(11, 900)}.{rng.randrange(10, 99)}",
        "number": f"RM-{rng.randrange(100_000, 999_999)}",
        "share": f"0.{rng.randrange(100, 999)}",
        "people": f"{rng.randrange(120, 4_000)}",
    }
    return amounts.get(shape) or f"{rng.randrange(11, 99)}"


_Fact = tuple[Speaker, str, str, tuple[str, ...], str, str]
_VALUES: Final[dict[Area, tuple[_Fact, ...]]] = {
    "coding": (
        (
            *("tool", "shard of {name}: p99 {value} ms, errors 0", "ms", ("p99",)),
            *("Set the alert for {name}'s shard to the p99 that was measured.", "set_alert"),
        ),
        (
            "assistant",
            "The importer of {name} holds {value} rows in memory before it writes.",
            *("rows", ("importer",)),
            *("Set {name}'s batch size to what its importer holds in memory.", "set_batch"),
        ),
        (
            *("user", "Their nightly export ({name}) starts at {value}, by the way.", "clock"),
            *(("export",), "Write the cron line for {name}'s export, at its time.", "set_cron"),
        ),
    ),
    "support": (
        (
            *("tool", "return label for {name}: {value}, printed", "number", ("label",)),
            *("Send {name} the number of their return label again.", "send_label"),
        ),
        (
            "assistant",
            "I have promised {name} {value} euros for the late delivery.",
            *("euros", ("promised",)),
            *("Pay {name} what was promised to them.", "refund"),
        ),
        (
            *("user", "Call {name} back at {value}, not earlier, they are in a meeting.", "clock"),
            *(("call",), "Schedule the call with {name} for the time I gave you.", "schedule"),
        ),
    ),
    "research": (
        (
            *("tool", "{name} et al.: effect size {value}, preregistered", "share", ("effect",)),
            *("Put the effect size of {name} et al. into the table.", "fill_cell"),
        ),
        (
            "assistant",
            "From the appendix of {name} et al.: {value} participants were left after exclusions.",
            *("people", ("participants",)),
            *("Put the participants of {name} et al. into the table.", "fill_cell"),
        ),
        (
            *("user", "The interview with {name} is on at {value}, put it into the plan.", "clock"),
            *(("interview",), "Send the invitation for the interview with {name}.", "invite"),
        ),
    ),
}


def _newest(area: Area, words: Vocabulary) -> Case:
    """A value that was changed."""
    name = words.tenant()
    first, second, report, shape, about, ask, tool = _CHANGED[area]
    old, new = _amount(shape, words), _amount(shape, words)
    while new == old:
        new = _amount(shape, words)
    how: Speaker = words.rng.choice(["user", "tool"])
    early, late = words.rng.uniform(0.05, 0.25), words.rng.uniform(0.3, 0.44)
    values = {"name": name, "old": old, "new": new}
    if how == "user":
        plants = (
            Plant(early, "user", first.format(**values)),
            Plant(late, "user", second.format(**values)),
        )
    else:  # looked up twice; nobody says that it changed
        plants = tuple(
            Plant(
                place,
                "tool",
                "\n".join(
                    report.format(name=each, value=value if each == name else _amount(shape, words))
                    for each in (*words.others[:4], name, *words.others[4:])
                ),
            )
            for place, value in ((early, old), (late, new))
        )
    question = Question("newest value", ask.format(name=name), (name, *about), _SHAPES[shape], tool)
    return Case(plants, (Need(question, new),))


_CHANGED: Final[dict[Area, tuple[str, str, str, str, tuple[str, ...], str, str]]] = {
    "coding": (
        "Let us take {old} seconds as the timeout for {name}.",
        "I spoke to them again: the timeout for {name} should be {new} seconds, not {old} seconds.",
        *("{name}: timeout {value} seconds, pool open", "seconds", ("timeout",)),
        *("Write the timeout for {name} into the settings.", "set_timeout"),
    ),
    "support": (
        "{name} may return things for {old} days, that is their contract.",
        "Their contract was renewed: {name} may return things for {new} days now.",
        *("{name}: return within {value} days, tier gold", "days", ("return",)),
        *("Tell {name} how long they may return things.", "answer"),
    ),
    "research": (
        "Take {old} percent as the cutoff for the {name} sample.",
        "The reviewers want the {name} sample with a cutoff of {new} percent, not {old} percent.",
        *("{name} sample: cutoff {value} percent, weights on", "percent", ("cutoff",)),
        *("Run the analysis of the {name} sample with its cutoff.", "analyze"),
    ),
}


def _rule(area: Area, words: Vocabulary) -> Case:
    """What the user said about how things are done; the later prompt doesn't mention it."""
    rules = _RULES[area]
    rule, change, about, shape, ask, tool = rules[words.rule(len(rules))]
    codes = [words.code(), words.code()]
    names = [words.tenant(), words.tenant()]
    values = {"code": codes[0], "name": names[0], "other": names[1]}
    place = words.rng.choice([0.0, words.rng.uniform(0.05, 0.3)])
    plants = [Plant(place, "user", rule.format(**values))]
    answer = codes[0] if "{code}" in rule else names[0]
    if words.rng.random() < 0.4:
        plants.append(
            Plant(words.rng.uniform(0.32, 0.44), "user", change.format(new=codes[1], **values))
        )
        answer = codes[1] if "{new}" in change else names[1]
    question = Question("rule", ask, about, shape, tool, known=False)
    return Case(tuple(plants), (Need(question, answer),))


_RULES: Final[dict[Area, tuple[tuple[str, str, tuple[str, ...], str, str, str], ...]]] = {
    "coding": (
        (
            "In all of this work, every commit gets the trailer Refs: {code}.",
            "From now on every commit gets the trailer Refs: {new}.",
            *(("commit", "trailer"), r"Refs: ([A-Z]{3}-\d{4})", "Commit this.", "commit"),
        ),
        (
            "Whatever writes to a database runs on the host {name} and on no other.",
            "Whatever writes to a database runs on the host {other} as of now.",
            *(("database", "host"), r"host ([A-Z]\w+)", "Run the migration.", "migrate"),
        ),
    ),
    "support": (
        (
            "Goodwill is booked on the account {code}, always.",
            "Goodwill is booked on the account {new} from today on.",
            *(("goodwill", "account"), r"account ([A-Z]{3}-\d{4})"),
            *("Give them ten euros of goodwill.", "book"),
        ),
        (
            "Whoever threatens with a lawyer is handed over to {name}, without another word.",
            "Whoever threatens with a lawyer is handed over to {other} from today on.",
            *(("lawyer",), r"handed over to ([A-Z]\w+)"),
            *("They write that their attorney will be in touch. Do what we do then.", "hand_over"),
        ),
    ),
    "research": (
        (
            "Each table that we make is filed under the key {code}.",
            "Each table that we make is filed under the key {new} now.",
            *(("table", "filed"), r"key ([A-Z]{3}-\d{4})", "File this table.", "file_table"),
        ),
        (
            "Never cite {name}'s press releases: cite the registry entry {code} in their place.",
            "In place of those press releases, cite the registry entry {new} from now on.",
            *(("press releases", "registry"), r"registry entry ([A-Z]{3}-\d{4})"),
            *("Now the sentence about the press release, with what we cite.", "cite"),
        ),
    ),
}


def _exact(area: Area, words: Vocabulary) -> Case:
    """A line that must be given letter by letter."""
    name = words.tenant()
    lower, value = name.lower(), words.number()
    if area == "coding":
        document = f"src/{words.noun()}/{lower}_{words.noun()}.py"
        line = (
            f"    wait = min({value}, base * {words.rng.randrange(2, 9)} ** attempt)"
            f"  # {name}: capped, see {words.code()}"
        )
        near = [line.replace(name, each) for each in words.others[:3]]
        question = Question(
            *("exact text", f"In the wait of {name}, double the cap that is there now."),
            *((name, "wait ="), r"^\s*(wait = .*)$", "edit"),
            source=rf"\b(src/\w+/{lower}_\w+\.py)\b",
            reader="read_file",
        )
    elif area == "support":
        document = f"mail-{words.rng.randrange(10_000, 99_999)}"
        reason = f"the {words.noun()} came {value} hours after the {words.noun()}"
        line = f"{name} writes: We insist that {reason}, and that nobody told us."
        near = [f"{each} writes: We insist on nothing." for each in words.others[:3]]
        question = Question(
            *("exact text", f"Quote {name}'s complaint in the ticket, word for word."),
            *((name, "insist"), r"^.*?writes: (We insist .*)$", "quote"),
            source=rf"{name}[^\n]{{0,60}}\b(mail-\d{{5}})\b",
            reader="open_mail",
        )
    else:
        document = f"source-{words.rng.randrange(10_000, 99_999)}"
        line = (
            f"{name} et al. conclude: The {words.noun()} explains {value} of {2 * value} cases of "
            f"{words.noun()} {words.noun()}, within the limits of the {words.noun()}."
        )
        near = [
            line.replace(name, each).replace(str(value), str(value + 3))
            for each in words.others[:3]
        ]
        question = Question(
            *("exact text", f"Quote the conclusion of {name} et al., word for word."),
            *((name, "conclude"), r"^.*?conclude: (The .*)$", "quote"),
            source=rf"{name}[^\n]{{0,60}}\b(source-\d{{5}})\b",
            reader="open_source",
        )
    lines = [line, *near]
    words.rng.shuffle(lines)
    text = "\n".join(lines)
    mark = {"coding": "", "support": "writes: ", "research": "conclude: "}[area]
    answer = line.partition(mark)[2] if mark else line.strip()
    plant = Plant(words.rng.uniform(0.08, 0.44), "tool", text, document)
    return Case((plant,), (Need(question, answer),))


def _thread(area: Area, words: Vocabulary) -> Case:
    """A list to work through: what is next depends on what has been done."""
    topic, verb, done, plan, ask, report = _THREADS[area]
    items = list(
        dict.fromkeys(
            f"{words.noun()}-{words.noun()}-{words.rng.randrange(10, 99)}" for _ in range(9)
        )
    )
    finished = words.rng.randrange(3, 6)
    first = words.rng.choice([0.0, words.rng.uniform(0.03, 0.12)])
    plants = [Plant(first, "user", plan.format(items=", ".join(items)))]
    for number, item in enumerate(items[:finished]):
        place = 0.14 + 0.32 * (number + words.rng.random() / 2) / finished
        plants.append(Plant(place, "assistant", report.format(item=item)))
    needs = tuple(
        Need(
            Question(
                *("thread", ask, (topic, "in this order"), r"in this order: ([^\n]*)", verb),
                done=done,
            ),
            items[finished + later],
        )
        for later in range(2)
    )
    return Case(tuple(plants), needs)


_THREADS: Final[dict[Area, tuple[str, str, str, str, str, str]]] = {
    "coding": (
        *("modules", "migrate", "migrated"),
        "Migrate these modules to the new client, in this order: {items}. Only when I say so.",
        "Go on with the next module.",
        "I have migrated {item} to the new client, and its tests pass.",
    ),
    "support": (
        *("claims", "settle", "settled"),
        "Settle these claims, in this order: {items}. Wait for my word before each.",
        "Go on with the next claim.",
        "The claim {item} is settled, and the customer was informed.",
    ),
    "research": (
        *("papers", "review", "reviewed"),
        "Review these papers, in this order: {items}. I tell you when it is time for one.",
        "Go on with the next paper.",
        "I have reviewed {item}: its method is sound, and it answers another question.",
    ),
}

CASES: Final[dict[Kind, Callable[[Area, Vocabulary], Case]]] = {
    "value": _value,
    "newest value": _newest,
    "rule": _rule,
    "exact text": _exact,
    "thread": _thread,
}
