"""The configuration of Sphinx, which `make docs` uses to build the documentation."""

import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import mechanisms  # noqa: E402
from reference import generate  # noqa: E402

project = "sparelane"
author = "the authors of sparelane"
copyright = author
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "sparelane"
html_static_path = ["static"]
html_css_files = ["tables.css"]
html_theme_options = {"navigation_with_keys": True}
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
# Single backticks in docstrings mark code.
default_role = "code"
# Broken references are errors, except for names in Python signatures, which mostly belong to other projects.
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]
autodoc_typehints = "description"
# The sections of docstrings that list the columns of tables.
_TABLES = ("schemes", "service", "links", "drops")
napoleon_custom_sections = [
    (name, "params_style") for name in ("Columns", *(f"Columns of {table}" for table in _TABLES))
]
autodoc_member_order = "bysource"
# Pages are also read in the repository, so they may link to files outside the documentation.
suppress_warnings = ["myst.xref_missing", "myst.header"]
linkcheck_anchors = False

# A cell that starts with a number, and the maximum lengths of such cells and of others that stay on one line.
NUMBER = re.compile(r"(at least |at most |above |below |over |under )?[-+±–−×<>≤≥]?\d.*")
NUMBER_COLUMNS = 34
WORDS_COLUMNS = 24
# A cell of this length or longer is text and gets a minimum width, characters.
TEXT_COLUMNS = 80


def mark_cells(_: Sphinx, document: nodes.document) -> None:
    """Marks table cells that stay on one line, and cells with text that need a minimum width."""
    for cell in document.findall(nodes.entry):
        text = cell.astext()
        if len(text) <= (NUMBER_COLUMNS if NUMBER.fullmatch(text) else WORDS_COLUMNS):
            cell["classes"].append("one-line")
        elif len(text) >= TEXT_COLUMNS:
            cell["classes"].append("text")


def link_to_pages(_: Sphinx, page: str, source: list[str]) -> None:
    """Replaces links to README files of results by links to their generated pages."""
    if "/" not in page:
        source[0] = re.sub(r"\(\.\./(results/[^)\s]*)README\.md\)", r"(generated/\1index.md)", source[0])


def setup(app: Sphinx) -> None:
    """Registers the two functions above with Sphinx."""
    app.connect("doctree-read", mark_cells)
    app.connect("source-read", link_to_pages)


generate(HERE / "generated")
mechanisms.generate(HERE / "generated" / "mechanisms")
