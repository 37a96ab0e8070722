"""Adds the documentation of modules, made from their docstrings, to the pages that link to the modules."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import GoogleDocstring

PAGES = ("docs/python-api", "docs/plugin-api")
MODULE = re.compile(r"\]\(\.\./daemon/src/(llmd/[\w/]+)\.py\)")
MADE_BY_LOAD = "llmd.embedded.engine.Engine"


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the functions below; Sphinx calls this."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("source-read", add_modules)
    app.connect("autodoc-process-docstring", format_sections)
    app.connect("autodoc-process-signature", adjust_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def add_modules(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add a section for each module to which a page about Python links."""
    if page in PAGES:
        names = list(modules(source[0]))
        for module in map(import_module, names):
            import_types(module)
        source[0] += "".join(map(section, names))


def modules(text: str) -> Iterator[str]:
    """Yield the names of the modules to which a page links."""
    yield from (path.replace("/", ".") for path in dict.fromkeys(MODULE.findall(text)))


def section(module: str) -> str:
    """Return the section of a module, with everything in it that has a docstring."""
    return f"\n## {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n   :members:\n```\n"


def import_types(module: ModuleType) -> None:
    """Give a module the names that it imports only for type checkers; its signatures contain them."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for imported in node.body:
                if isinstance(imported, ast.ImportFrom) and imported.module:
                    home = import_module(imported.module)
                    for alias in imported.names:
                        setattr(module, alias.name, getattr(home, alias.name))


def format_sections(
    app: Sphinx, what: Any, name: str, documented: Any, options: Any, lines: list[str]
) -> None:
    """Format the sections of docstrings, such as Raises.

    The extension for this, ``sphinx.ext.napoleon``, takes text before a colon in the docstring of a field for
    the type of the field.
    """
    config: Any = Config()
    what = "method" if what in ("attribute", "data", "property") else what
    lines[:] = GoogleDocstring(lines, config, app, what, name, documented, options).lines()


def adjust_signature(
    _app: Sphinx,
    _what: str,
    name: str,
    _object: Any,
    _options: Any,
    arguments: str | None,
    returned: str | None,
) -> tuple[str, str | None] | None:
    """Make a signature readable: without a constructor that users do not call, and as Python."""
    if name == MADE_BY_LOAD:
        return "", None
    return (arguments.replace("<factory>", "..."), returned) if arguments else None
