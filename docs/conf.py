"""How Sphinx builds the documentation: `make docs`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

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
html_css_files = ["wide-tables.css"]
html_theme_options = {"navigation_with_keys": True}
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
# Every reference leads somewhere, but for names in Python's signatures: most of these are of other projects.
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
# Pages that the repository shows, too, name files of the repository.
suppress_warnings = ["myst.xref_missing", "myst.header"]
linkcheck_anchors = False

generate(HERE / "generated")
