"""The pages on the view say what is true of it: the profiles' values, and all that is public."""

import re

from project_paths import DOCS

from refold import view
from refold.settings.names import leaves
from refold.view import PROFILES

GUIDE = DOCS / "lab" / "choose-a-profile.md"
MARKERS = {"trim.marker", "fit.marker"}


def setting_text(key, value):
    """A value as the guide writes it."""
    if not value:
        return "off"
    if value is True:
        return "yes"
    if key == "trigger.generation":
        return ", ".join(
            f"from {least:,}: {share}" if least else f"{share}" for least, share in value
        )
    if key in MARKERS:
        return f"`{value.strip()}`"
    return value if isinstance(value, str) else f"{value:,}"


def expected_rows():
    """A row for each value in which the profiles differ."""
    values = {
        name: dict(leaves(one.model_dump(exclude={"name"}))) for name, one in PROFILES.items()
    }
    for key in values["balanced"]:
        own = [of_profile[key] for of_profile in values.values()]
        if any(one != own[0] for one in own):
            yield f"| `{key}` | {' | '.join(setting_text(key, one) for one in own)} |"


def test_the_table_has_every_value_in_which_the_profiles_differ():
    text = GUIDE.read_text(encoding="utf-8")
    head = f"| value | {' | '.join(PROFILES)} |"
    table = re.search(rf"^{re.escape(head)}\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table, f"no table that begins with: {head}"
    expected = list(expected_rows())
    assert table[1].splitlines() == expected, "The rows should be:\n" + "\n".join(expected)


def test_each_profile_is_described():
    described = re.findall(
        r"^\| `([\w-]+)` \| [A-Z]", GUIDE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert described == list(PROFILES)


def test_the_reference_has_all_that_is_public():
    text = (DOCS / "reference" / "view.md").read_text(encoding="utf-8")
    assert [name for name in view.__all__ if not re.search(rf"[.`]{name}[\n`]", text)] == []
