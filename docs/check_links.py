"""Checks that every link of the built documentation has an existing target, both files and anchors.

`make docs` runs it. Links to other sites are not followed, so the check needs no network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes that refer to another file.
LINKS = {"href", "src"}
# URL schemes of links that leave the documentation.
OUTSIDE = {"http", "https", "mailto", "data", "javascript"}


class Page(HTMLParser):
    """The links and the anchors of an HTML page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Records links and anchors of a tag."""
        given = dict(attrs)
        if tag == "meta" and given.get("name") == "fragments":
            # The playground draws its pages by scripts, so they are no elements. It lists their names.
            self.anchors.update((given.get("content") or "").split())
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in LINKS:
                self.links.append(value)


@cache
def page(path: Path) -> Page:
    """Parses a page once and caches it."""
    return Page(path.read_text(encoding="utf-8"))


def broken(root: Path) -> Iterator[str]:
    """Yields a message for each broken link in the pages of a folder."""
    for path in sorted(root.rglob("*.html")):
        for link in page(path).links:
            parts = urlsplit(link)
            if parts.scheme in OUTSIDE or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            where = f"{path.relative_to(root)}: {link}"
            if target.is_dir() or not target.exists():
                yield f"{where}: the file does not exist"
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in page(target).anchors:
                yield f"{where}: the anchor does not exist"


def main() -> int:
    """Prints the broken links; returns 1 if there are any, or if there are no pages."""
    root = Path(sys.argv[1])
    pages = len(list(root.rglob("*.html")))
    found = list(broken(root))
    print("\n".join([*found, f"{pages} pages, {len(found)} broken links"]))
    return 1 if found or not pages else 0


if __name__ == "__main__":
    raise SystemExit(main())
