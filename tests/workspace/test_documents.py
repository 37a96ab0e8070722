"""Documents refer only to existing files, and their prose is wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("bench", "bindings", "daemon", "docs", "examples", "guide", "plugins", "tests")
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(
            document
            for folder in FOLDERS
            for document in (ROOT / folder).rglob("*.md")
            if not {"build", "node_modules"} & set(document.relative_to(ROOT).parts)
        ),
    ]
)
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
PLACE = re.compile(r"`([a-z_0-9.-]+/[a-z_0-9./-]*)`")
"""A path in code, without capitals, which mark placeholders."""
PACKAGES = ("", "daemon/src", "daemon/src/llmd")
MADE = (".tools/", ".venv/", "build/", "wheelhouse/")
MAX_COLUMNS = 120
LINK_ONLY = re.compile(r"\s*(?:- )?\[[^]]*\]\([^)]*\)[.,;:]?")


def relative(document: Path) -> str:
    return str(document.relative_to(ROOT))


def exists(place: str, document: Path) -> bool:
    """Whether a path exists next to its document, in the workspace or in the daemon's package."""
    folders = (document.parent, *(ROOT / package for package in PACKAGES))
    return place.startswith(MADE) or any((folder / place).exists() for folder in folders)


def is_wrapped(document: Path) -> bool:
    """Whether the prose of a document has a column limit: all pages except decisions and plans."""
    first, *others = document.relative_to(ROOT).parts
    return first in ("README.md", "CONTRIBUTING.md") or (
        first == "docs" and not {"decisions", "plans"} & set(others)
    )


def long_lines(text: str) -> Iterator[int]:
    """Yield the numbers of prose lines that exceed the limit; tables, code and lone links may."""
    in_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        is_prose = not in_code and not line.startswith(("|", "    ")) and not LINK_ONLY.fullmatch(line)
        if is_prose and len(line) > MAX_COLUMNS:
            yield number


def test_relative_links_lead_to_files() -> None:
    links = [(document, target) for document in DOCUMENTS for target in LINK.findall(document.read_text())]
    assert [(relative(one), target) for one, target in links if not (one.parent / target).exists()] == []


def test_paths_in_code_lead_to_files() -> None:
    places = [(document, place) for document in DOCUMENTS for place in PLACE.findall(document.read_text())]
    assert [(relative(one), place) for one, place in places if not exists(place, one)] == []


def test_links_and_paths_are_found() -> None:
    assert "docs/architecture.md" in LINK.findall((ROOT / "README.md").read_text())
    contributing = ROOT / "CONTRIBUTING.md"
    assert "tests/serving/" in PLACE.findall(contributing.read_text())
    assert exists("llmd/pager/pool.py", contributing)
    assert not exists("llmd/pager/gone.py", contributing)


def test_prose_is_wrapped() -> None:
    wrapped = [document for document in DOCUMENTS if is_wrapped(document)]
    assert [(relative(one), number) for one in wrapped for number in long_lines(one.read_text())] == []


def test_long_prose_lines_are_found() -> None:
    long = "word " * 30
    text = f"{long}\n| {long} |\n```\n{long}\n```\n    {long}\n[{long}](file.md)\n{long}\n"
    assert list(long_lines(text)) == [1, 8]


def test_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
