"""Dead links, on the pages as a code host shows them and on the built site: part of `make docs`.

python tools/links.py SITE
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parent.parent
_ANCHORS = re.compile(r'<a (?:id|name)="([^"]+)"')
_DROPPED = re.compile(r"[^\w\- ]")


def markdown_pages(root: Path = ROOT) -> list[Path]:
    """Every page that a code host shows."""
    folders = ("docs", "examples", ".github")
    pages = [
        *root.glob("*.md"),
        *(page for name in folders for page in (root / name).rglob("*.md")),
    ]
    return sorted(page for page in pages if "_build" not in page.parts)


def dead_in_markdown(pages: Iterable[Path]) -> Iterator[str]:
    """Links and pictures of Markdown files that lead nowhere."""
    for page in pages:
        for token in _inline(page.read_text(encoding="utf-8")):
            target = token.attrGet("href" if token.type == "link_open" else "src")
            if target and _is_dead(page, str(target), _slugs):
                yield f"{page}: {target}"


def dead_in_site(folder: Path) -> Iterator[str]:
    """Links, pictures, scripts and styles of HTML files that lead nowhere."""
    for page in sorted(folder.rglob("*.html")):
        for target in _read(page).targets:
            if _is_dead(page, target, lambda path: _read(path).anchors):
                yield f"{page}: {target}"


def _is_dead(page: Path, target: str, anchors: Callable[[Path], Container[str]]) -> bool:
    address = urlsplit(target)
    if address.scheme or address.netloc:
        return False
    path = (page.parent / unquote(address.path)).resolve() if address.path else page.resolve()
    if not path.exists():
        return True
    known = path.suffix == page.suffix and address.fragment
    return bool(known) and unquote(address.fragment) not in anchors(path)


def _inline(text: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        yield from (token.children or []) if token.type == "inline" else []


@cache
def _slugs(page: Path) -> frozenset[str]:
    """The anchors that a code host makes: one for each heading, and those that the page sets."""
    text = page.read_text(encoding="utf-8")
    tokens = MarkdownIt("commonmark").parse(text)
    headings = [after for token, after in pairwise(tokens) if token.type == "heading_open"]
    seen: Counter[str] = Counter()
    found = set(_ANCHORS.findall(text))
    for heading in headings:
        shown = [part for part in heading.children or [] if part.type in {"text", "code_inline"}]
        words = "".join(part.content for part in shown)
        slug = _DROPPED.sub("", words.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return frozenset(found)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        given = {name: value for name, value in attrs if value}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.targets += [given[name] for name in ("href", "src") if name in given]


@cache
def _read(page: Path) -> _Page:
    read = _Page()
    read.feed(page.read_text(encoding="utf-8"))
    return read


def main() -> int:
    """The command line."""
    dead = [*dead_in_markdown(markdown_pages()), *dead_in_site(Path(sys.argv[1]).resolve())]
    print("\n".join(dead) or "No link is dead.")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
