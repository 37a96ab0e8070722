"""The messages that docs/troubleshooting.md quotes are those of llmd."""

from __future__ import annotations

import re

import pytest

from tests.docs.page import CODE, DOCS, ROOT, rows_with

PAGE = (DOCS / "troubleshooting.md").read_text()
QUOTED = sorted(
    {
        code
        for row in rows_with(PAGE, "you see")
        for code in CODE.findall(row["you see"])
        if not code.startswith(("llmd", "guide"))
    }
)
SOURCES = "\n".join(path.read_text() for path in (ROOT / "daemon" / "src" / "llmd").rglob("*.py"))
LITERAL = re.sub(r'"\s*\n\s*f?"', "", SOURCES)
"""The sources with the parts of long texts joined."""


@pytest.mark.parametrize("quoted", QUOTED)
def test_quoted_messages_are_in_the_sources(quoted: str) -> None:
    pattern = r"[^\n]*".join(
        re.escape(part) for part in quoted.replace(": Address already in use", "").split("…")
    )
    assert re.search(pattern, LITERAL), quoted


def test_messages_are_quoted() -> None:
    assert len(QUOTED) >= 15
