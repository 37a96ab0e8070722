"""Docstrings of the fields of classes, which Python itself does not keep."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import sys
import threading
from collections.abc import Iterator, Mapping

_PARSING = threading.Lock()
"""Python 3.11 fails if two threads make syntax trees at the same time (SystemError)."""


def field_docs(kind: type) -> Mapping[str, str]:
    """Return the docstring of each field of a class, bases in the same module included, on one line."""
    return module_docs(kind.__module__).get(kind.__name__, {})


@functools.cache
def module_docs(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings of the fields of each class of an imported module, by the name of the class.

    Empty where the sources are not installed.
    """
    try:
        source = inspect.getsource(sys.modules[module])
    except OSError:
        return {}
    with _PARSING:
        tree = ast.parse(source)
    found: dict[str, Mapping[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            inherited = [found.get(base.id, {}) for base in node.bases if isinstance(base, ast.Name)]
            own = dict(_documented(node))
            found[node.name] = {name: text for docs in [*inherited, own] for name, text in docs.items()}
    return found


def _documented(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in itertools.pairwise(node.body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            yield field.target.id, " ".join(text.value.value.split())
