"""The configuration of Sphinx. The sources are the Markdown files of the repository, in their folders."""

from __future__ import annotations

project = "llmd"
html_title = "llmd"
html_theme = "furo"
root_doc = "docs/README"
html_additional_pages = {"index": "start.html"}  # the address of the site leads to docs/README.html
templates_path = ["templates"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "tools.docs.links",
    "tools.docs.navigation",
    "tools.docs.api_pages",
]
include_patterns = [
    "*.md",
    "docs/**.md",
    "bench/*.md",
    "bench/results/*.md",
    "bindings/*.md",
    "daemon/*.md",
    "examples/**.md",
    "guide/*.md",
    "plugins/**.md",
    "tests/**.md",
    "tui/*.md",
]
exclude_patterns = [".*", "**/.*", "**/node_modules", "build", "**/build", "docs/plans", "wheelhouse*"]
myst_heading_anchors = 4
# Only colours: commands over several lines, JSON with an ellipsis and Modelfiles have no lexer.
suppress_warnings = ["misc.highlighting_failure"]

default_role = "any"  # `Name` in a docstring is a link
add_module_names = False
toc_object_entries = False  # hundreds of entries, which each page would copy: half of the time of a build
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
nitpicky = True
nitpick_ignore = [
    ("py:class", "llmd.config.sources.Settings")
]  # commands pass it to the client, programs need not
nitpick_ignore_regex = [
    # Types of other packages in signatures: nothing is downloaded to link them.
    ("py:.*", r"(collections|contextlib|msgspec|numpy|os|pathlib|pluggy|socket|types|typing)\..*"),
    ("py:class", r"llmd\.api\.[a-z_]+\.T"),  # a type variable
]
