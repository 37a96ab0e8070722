"""Links of the site to files that are no pages.

A link to a source file leads to a copy of the file, a link to a folder to its README.
"""

from __future__ import annotations

import html
from pathlib import Path, PurePosixPath

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

FILES = "linked_files"
"""The key of the environment's metadata that lists the files to which a page links."""
COPY = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>{title}</title></head>
<body><pre>{text}</pre></body>
</html>
"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the functions below; Sphinx calls this."""
    # Before Sphinx collects what a page offers for download (500).
    app.connect("doctree-read", link_files, priority=400)
    app.connect("build-finished", write_copies)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def link_files(app: Sphinx, doctree: nodes.document) -> None:
    """Make the links of a page to other files and to folders lead to pages of the site."""
    env = app.env
    page = env.docname
    files = env.metadata[page].setdefault(FILES, [])
    for link in list(doctree.findall(addnodes.download_reference)):
        path, _ = env.relfn2path(link["reftarget"], page)
        files.append(path)
        uri = app.builder.get_relative_uri(page, path)
        link.replace_self(nodes.reference("", "", *link.children, refuri=uri, internal=True))
    for link in doctree.findall(addnodes.pending_xref):
        if link["reftype"] == "myst" and link.get("refdomain") != "doc":
            readme = PurePosixPath(env.relfn2path(link["reftarget"], page)[0]) / "README"
            if f"{readme}" in env.found_docs:
                link.attributes |= {"refdomain": "doc", "reftarget": f"{readme}", "reftargetid": None}


def write_copies(app: Sphinx, error: Exception | None) -> None:
    """Write a copy of each file that a page links to, for browsers to show."""
    if error is not None:
        return
    for path in {path for page in app.env.found_docs for path in app.env.metadata[page].get(FILES, ())}:
        copy = Path(app.outdir, app.builder.get_target_uri(path))
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = Path(app.srcdir, path).read_text(encoding="utf-8")
        copy.write_text(COPY.format(title=path, text=html.escape(text)), encoding="utf-8")
