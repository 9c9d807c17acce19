"""What people read of Refold: links that say where they lead, and no promise that is not kept."""

import ast
import re
from collections.abc import Iterator

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from project_paths import ROOT

from refold import errors

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

# A decision is a record of what was thought when it was taken: it is not rewritten.
PROSE = [page for page in PAGES if page.parent.name != "adr"]

_SHOWN = {"text", "code_inline", "image"}
_ANCHOR = re.compile(r"<a\b[^>]*\bhref\b[^>]*>\s*</a>", re.IGNORECASE)

# Promises that were made and did not hold. A stopgap: it keeps these from coming back, and no more.
UNTRUE = {
    "an extractive summary": r"cannot be wrong",
    "what grounding notices": r"cannot invent|unnoticed|each claim against the log",
    "the bytes after a forget": r"\bno byte\b(?! of (?:other|another))|down to the bytes",
    "what leaves the log": r"only `?forget`? removes|the only thing that removes|"
    r"(?:ever|never) (?:be )?(?:lost|deleted)|nothing (?:ever )?leaves the log",
    "a profile and its source": r"(?:documents?|form|source|seed)[^.]{0,60}to the letter",
    "an agent behind the gateway": r"base URL, and nothing else|but an address\.",
}

# Words and turns that read as translated. Rewrite the sentence: the list is short because it only
# has what no sentence of ours needs.
STIFF = {
    "be told": r"\b(?:is|are|was|were|be|been|being) (?:told|said)\b",
    "go on": r"\b(?:go|goes|going|went|gone) on\b",
    "stand for": r"\b(?:stand|stands|stood|standing) (?:for|in the place)\b",
    "anew": r"\banew\b",
    "whoever": r"\bwho(?:so)?ever\b",
    "of yours": r"\bof (?:yours|ours|theirs|hers|his)\b",
    "who, without a noun": r"(?:^|[.;:] )(?-i:Who) (?![^.?!]*\?)",
    "at hand": r"\b(?:at hand|in vain|as (?:it|they) comes?)\b",
    "look after": r"\blooks? after\b",
    "is no (say: is not a)": r"(?<!\bthere )\b(?:is|are) no "
    r"(?!(?:longer|more|different|limit|need|less|such)\b)",
    "may, after a count": r"\bas (?:many|much) \w+ as (?:it|they) may\b",
    "if it stays so": r"\bstays so\b",
    "take nothing new": r"\btakes? nothing new\b",
    "British spelling": r"\b\w*(?:behaviour|colour|favour|honour|summaris|recognis|organis|"
    r"normalis|serialis|cancell(?:ed|ing)|analys(?:e[sd]?|ing))\w*\b",
}
REWRITTEN = (
    "GLOSSARY.md",
    "PACKAGE.md",
    "README.md",
    "examples/README.md",
    "docs/cookbook.md",
    "docs/index.md",
    *(
        f"docs/coding-agents/{page}.md"
        for page in ("wrap", "claude-code", "codex", "opencode", "copilot-cli", "qwen-code", "pi")
    ),
    "docs/concepts",
    "docs/help",
    "docs/library",
    "docs/memory",
    "docs/pydantic-ai",
    *(f"docs/reference/{page}.md" for page in ("cli", "events", "http", "promises", "settings")),
    "docs/start",
    *("docs/chat", "docs/gateway", "docs/lab", "docs/manage", "CONTRIBUTING.md", "SECURITY.md"),
    *(
        f"docs/contributing/{page.name}"
        for page in sorted((ROOT / "docs/contributing").glob("*.md"))
    ),
)
"""Pages and folders whose prose is held to the list."""


_ERRORS = {name for name in dir(errors) if isinstance(getattr(errors, name), type)}
_HELP = {"help", "short_help", "epilog"}


def messages(source: str) -> Iterator[str]:
    """The help texts of a module's commands and the texts of the errors that it raises.

    A text that is put together has an ellipsis where a value goes.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            raised = [*node.args, *(one.value for one in node.keywords)] if name in _ERRORS else []
            for part in (*raised, *(one.value for one in node.keywords if one.arg in _HELP)):
                yield from _texts(part)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_command(node):
            yield ast.get_docstring(node) or ""


def _texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(v.value) if isinstance(v, ast.Constant) else "…" for v in node.values)
    elif isinstance(node, ast.BinOp | ast.IfExp):
        for child in ast.iter_child_nodes(node):
            yield from _texts(child) if isinstance(child, ast.expr) else ()


def _is_command(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    called = [one.func for one in node.decorator_list if isinstance(one, ast.Call)]
    return any(isinstance(one, ast.Attribute) and one.attr == "command" for one in called)


def _inline(tokens: list[Token]) -> Iterator[list[Token]]:
    for token in tokens:
        if token.type == "inline":
            yield token.children or []


def _shows(token: Token) -> bool:
    """Whether a reader sees anything of this inside a link."""
    return token.type in _SHOWN and bool(token.content.strip())


def links_without_text(text: str) -> list[str]:
    """Where the links lead of which a page shows nothing: MyST fills them in, code hosts do not."""
    found = _ANCHOR.findall(text)
    for children in _inline(MarkdownIt("commonmark").enable("table").parse(text)):
        target, shows = None, True
        for token in children:
            if token.type == "link_open":
                target, shows = str(token.attrGet("href")), False
            elif token.type == "link_close" and target is not None and not shows:
                found.append(target)
            else:
                shows = shows or _shows(token)
    return found


def promises(text: str) -> list[str]:
    """The untrue promises in a text, however its lines are broken and its words emphasized."""
    plain = re.sub(r"[\s*#>]+", " ", text)
    return [name for name, pattern in UNTRUE.items() if re.search(pattern, plain, re.IGNORECASE)]


def stiff(text: str) -> list[str]:
    """The sentences that have a turn of the list, each with its name; code is not prose."""
    found: list[str] = []
    for children in _inline(MarkdownIt("commonmark").enable("table").parse(text)):
        shown = "".join(
            "`code`" if token.type == "code_inline" else token.content or " " for token in children
        )
        for sentence in re.split(r"(?<=[.!?]) ", shown):
            found += [
                f"{name}: {sentence}"
                for name, turn in STIFF.items()
                if re.search(turn, sentence, re.IGNORECASE)
            ]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_has_a_text(page):
    assert links_without_text(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "see [](guides/chat.md)",
        "see [ ](guides/chat.md)",
        "| a |\n|---|\n| [](guides/chat.md) |",
        "[][chat]\n\n[chat]: guides/chat.md",
        "[![](picture.svg)](guides/chat.md)",
        '<a href="guides/chat.md"></a>',
    ],
)
def test_a_link_without_a_text_is_noticed(text):
    assert len(links_without_text(text)) == 1
    assert links_without_text("[The chat](a.md), [`refold`](b.md), [![a chat](c.svg)](d.md)") == []
    assert links_without_text("```markdown\n[](in-an-example.md)\n```") == []


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_makes_a_promise_that_did_not_hold(page):
    assert promises(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", REWRITTEN)
def test_prose_reads_as_written_in_english(name):
    pages = [ROOT / name] if name.endswith(".md") else sorted((ROOT / name).rglob("*.md"))
    assert pages
    assert {
        str(page): stiff(page.read_text("utf-8"))
        for page in pages
        if stiff(page.read_text("utf-8"))
    } == {}


def test_a_stiff_sentence_is_noticed():
    text = "The client is told. Who waits gets `an answer`. It goes on anew! Whoever asks?"
    assert [one.partition(":")[0] for one in stiff(text)] == [
        *("be told", "who, without a noun", "go on", "anew", "whoever")
    ]
    assert [one.partition(":")[0] for one in stiff("An id is no key. There is no key.")] == [
        "is no (say"
    ]
    assert stiff("`is told` and\n\n```text\nit goes on\n```\nWho may call it?") == []


def test_help_texts_and_errors_read_as_written_in_english():
    found = {
        str(file.relative_to(ROOT)): [
            one for text in messages(file.read_text("utf-8")) for one in stiff(text)
        ]
        for file in SOURCES
    }
    assert {file: turns for file, turns in found.items() if turns} == {}


def test_help_texts_and_errors_are_found():
    source = """
@app.command()
def run(name: Annotated[str, Option(help="Go on.")]):
    \"""Do it anew.\"""
    raise InvalidInput(f"{name} goes on.", "Stop " + "it." if name else "Whoever.")
"""
    assert sorted(messages(source)) == [
        "Do it anew.",
        "Go on.",
        "Stop ",
        "Whoever.",
        "it.",
        "… goes on.",
    ]
    assert sum(1 for file in SOURCES for _ in messages(file.read_text("utf-8"))) > 600


def test_no_help_message_or_docstring_makes_one_either():
    found = {str(file.relative_to(ROOT)): promises(file.read_text("utf-8")) for file in SOURCES}
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    [
        "It costs nothing and **cannot be\nwrong**.",
        "A summary cannot invent a name unnoticed.",
        "When `forget` returns, no byte is left.",
        "Nothing is lost. Only `forget` removes.",
        "Nothing that you say is ever lost.",
        "Each follows one of the documents, to the letter.",
        "Agents change their base URL, and nothing else.",
    ],
)
def test_a_promise_that_did_not_hold_is_noticed(text):
    assert len(promises(text)) == 1
    assert promises("A test follows the recipes to the letter. Nothing else changes.") == []
