"""Large tool results of earlier turns, replaced by a short reference.

The reference names the part, so that recall can read it back, and the names that it mentioned most,
so that a model still knows what it has seen. What was itself read back is told to be read again: a
reference to a copy would lead away from what was said.
"""

from collections.abc import Iterator

from refold.view.desk import Desk
from refold.view.framing import tool_name
from refold.view.names import mentioning
from refold.view.policy_values import Archive
from refold.wire import Part, Replace

READ_BACK = "recall_"
"""How the names of tools begin that read back what the log holds."""
_AGAIN = "[…read back earlier, and left out: call {tool} again if it is needed]"


def archive(
    desk: Desk, values: Archive, end: int, enough: int, start: int = 0
) -> Iterator[tuple[Part, Replace]]:
    """Archive results before row `end`, the oldest first, until the total is low enough."""
    if not values.min_chars:
        return
    for row in desk.sheet.rows[start:end]:
        for part in row.parts:
            if desk.total <= enough:
                return
            if part.kind == "return" and part.chars > values.min_chars and desk.free(part):
                text = desk.sheet.text(part)
                change = reference(part, text, values)
                if len(change.applied(text)) < len(text):
                    yield part, change


def reference(part: Part, text: str, values: Archive) -> Replace:
    """What stands for an archived result."""
    if part.tool and part.tool.startswith(READ_BACK):
        return Replace(0, _AGAIN.replace("{tool}", tool_name(part.tool)), 0, "archived")
    mentions = mentioning(text[values.excerpt :], values.names)
    mark = f"[…archived: {part.chars} chars, part {part.seq}.{part.nth}{mentions}]"
    lead = "\n" if values.excerpt else ""
    return Replace(values.excerpt, lead + mark, 0, "archived")
