"""Docstrings of the fields of a class, which Python itself does not keep."""

from __future__ import annotations

import ast
import inspect
import itertools
import sys
import threading
from collections.abc import Mapping

_PARSING = threading.Lock()
"""Python 3.11 fails if two threads make syntax trees at the same time (SystemError)."""


def field_docs(kind: type) -> Mapping[str, str]:
    """Return the docstring of each field of a class, bases in the same module included, on one line.

    Empty where the sources are not installed.
    """
    try:
        source = inspect.getsource(sys.modules[kind.__module__])
    except OSError:
        return {}
    with _PARSING:
        tree = ast.parse(source)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return _docs(kind.__name__, classes)


def _docs(name: str, classes: Mapping[str, ast.ClassDef]) -> dict[str, str]:
    found: dict[str, str] = {}
    if name not in classes:
        return found
    for base in classes[name].bases:
        if isinstance(base, ast.Name):
            found |= _docs(base.id, classes)
    body = classes[name].body
    for field, text in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            doc = _text(text)
            if doc:
                found[field.target.id] = doc
    return found


def _text(statement: ast.stmt) -> str:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return ""
    value = statement.value.value
    return " ".join(value.split()) if isinstance(value, str) else ""
