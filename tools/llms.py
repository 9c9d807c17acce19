"""Writes llms.txt and llms-full.txt into the built site: part of `make docs`.

python tools/llms.py SITE

`llms.txt` lists the pages as docs/index.md does, with their Markdown beside the site; the other has
all their text. See https://llmstxt.org.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
_TREE = re.compile(r"```\{toctree\}\n(?P<options>(?::[^\n]*\n)*)\n?(?P<entries>.*?)```", re.DOTALL)
_INCLUDE = re.compile(r"```\{include\} (\S+)\n.*?```", re.DOTALL)
_CAPTION = re.compile(r":caption: (.+)")
_ENTRY = re.compile(r"^(?:.*<)?([\w/*-]+)>?$")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


def sections(docs: Path = DOCS) -> Iterator[tuple[str, list[Path]]]:
    """The captions of the table of contents, each with its pages; those for contributors last."""
    for tree in _TREE.finditer((docs / "index.md").read_text(encoding="utf-8")):
        caption = _CAPTION.search(tree["options"])
        pages = [page for entry in tree["entries"].split("\n") for page in _pages(docs, entry)]
        yield caption[1] if caption else "Pages", pages


def _pages(docs: Path, entry: str) -> Iterator[Path]:
    found = _ENTRY.match(entry.strip())
    if not found:
        return
    page = docs / f"{found[1]}.md"
    yield page
    if ":glob:" in page.read_text(encoding="utf-8"):
        yield from sorted(one for one in page.parent.glob("*.md") if one != page)


def text_of(page: Path) -> str:
    """A page's Markdown, with what it includes."""

    def included(found: re.Match[str]) -> str:
        return (page.parent / found[1]).read_text(encoding="utf-8")

    return _INCLUDE.sub(included, page.read_text(encoding="utf-8"))


def title(text: str) -> str:
    """A page's first heading, without markup."""
    found = _TITLE.search(text)
    return found[1].replace("`", "") if found else ""


def summary(text: str) -> str:
    """The first sentence after a page's first heading, if a paragraph follows it."""
    _, _, rest = text.partition("\n# " if not text.startswith("# ") else "# ")
    for line in rest.split("\n")[1:]:
        if line.strip():
            plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", line)
            is_prose = plain[0].isalnum() or plain[0] in "`*"
            return re.split(r"(?<=[.!?]) ", plain)[0] if is_prose else ""
    return ""


def short(docs: Path = DOCS) -> str:
    """The list of pages."""
    index = (docs / "index.md").read_text(encoding="utf-8")
    about = index.split("\n\n")[1].replace("**", "")
    lines = ["# Refold", "", f"> {about}", ""]
    for caption, pages in sections(docs):
        lines += [f"## {caption}", ""]
        for page in pages:
            text = text_of(page)
            place = f"_sources/{page.relative_to(docs).as_posix()}.txt"
            about = summary(text)
            lines.append(f"- [{title(text)}]({place})" + (f": {about}" if about else ""))
        lines.append("")
    return "\n".join(lines)


def full(docs: Path = DOCS) -> str:
    """The text of all pages, in the same order."""
    pages = [docs / "index.md", *(page for _, pages in sections(docs) for page in pages)]
    texts = [text_of(page) for page in dict.fromkeys(pages)]
    return "\n\n".join(_TREE.sub("", text).strip() for text in texts) + "\n"


def main() -> int:
    """The command line."""
    site = Path(sys.argv[1])
    (site / "llms.txt").write_text(short(), encoding="utf-8")
    (site / "llms-full.txt").write_text(full(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
