"""The navigation of the site, made from the links of README pages, which stay readable on a code host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from docutils import nodes
from sphinx.application import Sphinx

SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n)*)", re.MULTILINE)
LINK = re.compile(r"\]\(([^):#\s]+)")
LISTED = ("docs/decisions/README", "bench/results/README")
"""READMEs that list all other pages of their folders. These are too many for the navigation of every page."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the functions below; Sphinx calls this."""
    app.connect("source-read", add_navigation)
    app.connect("doctree-read", allow_unlisted)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the navigation to the first page, and the list of pages to other READMEs."""
    if page == app.config.root_doc:
        source[0] += "".join(sections(source[0], Path(app.srcdir, page).parent))
    elif page in LISTED:
        source[0] += links_to_all(Path(app.srcdir, page).parent)


def sections(text: str, folder: Path) -> Iterator[str]:
    """Yield the navigation of each section: the pages to which it links, in the same order."""
    for title, body in SECTION.findall(text):
        pages = dict.fromkeys(filter(None, (page_of(target, folder) for target in LINK.findall(body))))
        entries = "\n".join(pages)
        yield f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{entries}\n```\n"


def page_of(target: str, folder: Path) -> str | None:
    """Return the page to which a link leads, relative to ``folder``: for a folder its README."""
    if (folder / target).is_dir():
        return f"{PurePosixPath(target) / 'README'}"
    return target.removesuffix(".md") if target.endswith(".md") else None


def links_to_all(folder: Path) -> str:
    """Return a list of the pages of a folder. Links without a text get the titles of the pages."""
    names = sorted(path.name for path in folder.glob("*.md") if path.stem != "README")
    return "\n" + "".join(f"- []({name})\n" for name in names)


def allow_unlisted(app: Sphinx, _doctree: nodes.document) -> None:
    """Let pages outside of docs/, and those of long lists, be reached by links alone."""
    page = PurePosixPath(app.env.docname)
    if page.parts[0] != "docs" or f"{page.parent / 'README'}" in LISTED:
        app.env.metadata[f"{page}"]["orphan"] = True
