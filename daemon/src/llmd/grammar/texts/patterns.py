r"""Convert regular expressions from JavaScript to Rust: ``.`` and ``\s`` differ, and some notations."""

from __future__ import annotations

import re
from typing import Any

_SPACE = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_NO_SPACE = (
    r"\x00-\x08\x0e-\x1f!-\u009f\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
    r"\u3001-\ufefe\uff00-\u{10ffff}"
)
_ANY_OF_A_LINE = r"[^\n\r\u2028\u2029]"
_TOKEN = re.compile(
    r"""
    \\c(?P<control>[A-Za-z])
    | \\(?P<escaped>.)
    | (?P<whole>\[\^?\])  # the class of no character, or of all
    | (?P<opened>\[)
    | (?P<closed>\])
    | (?P<dot>\.)
    """,
    re.DOTALL | re.VERBOSE,
)


def with_plain_patterns(schema: dict[str, Any]) -> dict[str, Any]:
    """Convert the patterns of a schema to Rust; return the schema itself if nothing changes."""
    changed = dict(schema)
    if isinstance(schema.get("pattern"), str):
        changed["pattern"] = plain_pattern(schema["pattern"])
    if isinstance(schema.get("patternProperties"), dict):
        changed["patternProperties"] = {
            plain_pattern(pattern): value for pattern, value in schema["patternProperties"].items()
        }
    return changed if changed != schema else schema


def plain_pattern(pattern: str) -> str:
    """Return a pattern that matches in Rust what the given one matches in JavaScript."""
    is_in_class = False

    def plain(match: re.Match[str]) -> str:
        nonlocal is_in_class
        kind = match.lastgroup
        if kind == "control":
            return f"\\x{ord(match['control']) % 32:02x}"
        if kind == "escaped" and match["escaped"] in "sS":
            listed = _SPACE if match["escaped"] == "s" else _NO_SPACE
            return listed if is_in_class else f"[{listed}]"
        if not is_in_class and kind in {"whole", "dot"}:
            return {"[]": r"[^\s\S]", "[^]": r"[\s\S]", ".": _ANY_OF_A_LINE}[match[0]]
        if kind in {"opened", "closed"}:
            is_in_class = kind == "opened"
        return match[0]

    return _TOKEN.sub(plain, pattern)
