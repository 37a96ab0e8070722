"""Documents point only at what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")])
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_to_files(document: Path) -> None:
    targets = LINK.findall(document.read_text())
    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_links_are_found_in_the_readme() -> None:
    assert "docs/architecture.md" in LINK.findall((ROOT / "README.md").read_text())


def test_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
