"""Builds the HTML of reports: the page with style and script, and parts that all reports share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path

from sparelane.reports.charts.panel import Panel
from sparelane.reports.pages import svg

# CSS classes of verdicts, by their first word.
TONES = {"better": "good", "worse": "bad", "holds": "good", "fails": "bad"}


def document(title: str, parts: Sequence[str]) -> str:
    """A complete HTML page, which loads nothing from other places."""
    folder = resources.files("sparelane.reports.pages")
    style = (folder / "report.css").read_text(encoding="utf-8")
    script = (folder / "report.js").read_text(encoding="utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n'
        f"<main>\n<h1>{escape(title)}</h1>\n" + "\n".join(part for part in parts if part) + "\n</main>\n"
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )


def section(title: str, *content: str, anchor: str = "") -> str:
    """A section with a heading and an optional anchor for links; empty if it has no content."""
    filled = [part for part in content if part]
    name = f' id="{escape(anchor)}"' if anchor else ""
    return f"<section{name}>\n<h2>{escape(title)}</h2>\n" + "\n".join(filled) + "\n</section>" if filled else ""


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text; empty for an empty text."""
    return f"<p{f' class={kind!r}' if kind else ''}>{escape(text)}</p>" if text else ""


# The largest input file whose text is included in the page, bytes.
MOST_SHOWN_BYTES = 100_000
# The longest text of a cell that is not wrapped, characters.
SHORT = 24


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[str] = (), caption: str = ""
) -> str:
    """A table of texts. Columns in `left` are aligned to the left, the others to the right."""
    head = "".join(_tag("th", name, [] if name in left else ["number"]) for name in headings)
    cells = ("".join(map(_cell, headings, row, [left] * len(row))) for row in rows)
    lines = "".join(f"<tr>{cell}</tr>" for cell in cells)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<div class="wide"><table>{title}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


def _cell(name: str, text: str, left: Sequence[str]) -> str:
    kinds = [] if name in left else ["number"]
    kinds += ["short"] if name in left and len(text) <= SHORT else []
    kinds += [tone for word, tone in TONES.items() if name == "verdict" and text.startswith(word)]
    return _tag("td", text, kinds)


def _tag(name: str, text: str, kinds: Sequence[str]) -> str:
    attribute = f' class="{" ".join(kinds)}"' if kinds else ""
    return f"<{name}{attribute}>{escape(text)}</{name}>"


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """A list of names with their values, without empty values."""
    lines = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs if text)
    return f"<dl>{lines}</dl>"


def contents(links: Sequence[tuple[str, str, str]]) -> str:
    """A table of contents, from the anchor, the name and the description of each section."""
    lines = "".join(
        f'<dt><a href="#{escape(anchor)}">{escape(name)}</a></dt><dd>{escape(text)}</dd>'
        for anchor, name, text in links
    )
    return f"<dl>{lines}</dl>"


def listing(summary: str, text: str, *, is_open: bool = False) -> str:
    """Preformatted text in a collapsible block with a summary."""
    return (
        f"<details{' open' if is_open else ''}><summary>{escape(summary)}</summary><pre>{escape(text)}</pre></details>"
    )


def details(summary: str, *content: str) -> str:
    """Parts of a page in a collapsible block with a summary."""
    return f"<details><summary>{escape(summary)}</summary>\n" + "\n".join(content) + "\n</details>"


def kept_file(folder: Path, kept: Mapping[str, str]) -> str:
    """The copy of an input file in the folder of results, with its SHA-256."""
    path = folder / kept["file"]
    name = f"{kept['file']} (SHA-256 {kept['sha256']})"
    try:
        text = path.read_text(encoding="utf-8") if path.stat().st_size <= MOST_SHOWN_BYTES else None
    except (OSError, UnicodeDecodeError):
        text = None
    if text is None:
        return paragraph(f"{name} is in the folder of the results, since it is too large for this page or not text.")
    return listing(name, text)


def command(text: str) -> str:
    """A command line."""
    return f'<pre class="command">{escape(text)}</pre>'


def figures(panels: Sequence[Panel], first: int = 1) -> str:
    """Panels in rows, with as many side by side as fit."""
    drawn = "\n".join(svg.figure(panel, number) for number, panel in enumerate(panels, first))
    return f'<div class="figures">\n{drawn}\n</div>' if drawn else ""


def items(texts: Sequence[str]) -> str:
    """A list; empty if it has no items."""
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>" if texts else ""
