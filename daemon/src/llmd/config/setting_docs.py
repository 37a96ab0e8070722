"""The documentation of each setting: the text below its field in the schema."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

from llmd.config import schema


@functools.cache
def setting_docs() -> dict[str, str]:
    """Return what each setting means, in one paragraph, by its bare name: ``slots``."""
    tree = ast.parse(Path(schema.__file__).read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return dict(documented for node in classes for documented in _documented(node))


def _documented(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in zip(node.body, node.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            yield field.target.id, " ".join(text.value.value.replace("``", "`").split())
