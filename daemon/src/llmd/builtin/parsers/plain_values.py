"""Values between tags: texts as they are, everything else as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from llmd.api.parsing import ChoiceTerm, SchemaTerm, Term, TextTerm
from llmd.builtin.parsers.cursor import Cursor, Script
from llmd.builtin.parsers.parameters import is_text, pattern_of, value_of


def read_plain(cursor: Cursor, schema: Mapping[str, Any], ends: Sequence[str]) -> Script[None]:
    """Read a value up to one of ``ends``, and emit it as JSON; a text is emitted as it arrives."""
    if is_text(schema):
        cursor.arguments('"')
        yield from cursor.until(
            *ends, tell=lambda text: cursor.arguments(json.dumps(text, ensure_ascii=False)[1:-1])
        )
        cursor.arguments('"')
    else:
        text = yield from cursor.until(*ends)
        cursor.arguments(value_of(text, schema))


def plain_terms(schema: Mapping[str, Any], end: str) -> tuple[Term, ...]:
    """Return the terms of such a value and its ``end``."""
    if not is_text(schema):
        return SchemaTerm(schema), end
    if "enum" in schema or "const" in schema:
        words = schema.get("enum", [schema.get("const")])
        return ChoiceTerm(tuple((str(word),) for word in words)), end
    return (TextTerm(end, pattern_of(schema)),)
