"""Whether every link of the built documentation leads somewhere: files, and places in them. `make docs` runs it.

Links to other sites are not followed: the check needs no network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes that name another file.
LINKS = {"href", "src"}
# Schemes of links that lead out of the documentation.
OUTSIDE = {"http", "https", "mailto", "data", "javascript"}


class Page(HTMLParser):
    """What a page refers to, and what can be referred to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes links and anchors."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in LINKS:
                self.links.append(value)


@cache
def page(path: Path) -> Page:
    """A page, read."""
    return Page(path.read_text(encoding="utf-8"))


def broken(root: Path) -> Iterator[str]:
    """Each link below a folder that leads nowhere."""
    for path in sorted(root.rglob("*.html")):
        for link in page(path).links:
            parts = urlsplit(link)
            if parts.scheme in OUTSIDE or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            where = f"{path.relative_to(root)}: {link}"
            if target.is_dir() or not target.exists():
                yield f"{where}: there is no such file"
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in page(target).anchors:
                yield f"{where}: there is no such place in it"


def main() -> int:
    """Prints what is broken; 1 where anything is."""
    root = Path(sys.argv[1])
    pages = len(list(root.rglob("*.html")))
    found = list(broken(root))
    print("\n".join([*found, f"{pages} pages, {len(found)} broken links"]))
    return 1 if found or not pages else 0


if __name__ == "__main__":
    raise SystemExit(main())
