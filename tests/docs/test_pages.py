"""The glossary and the architecture page only name paths, packages and modules that exist."""

from __future__ import annotations

import re

from tests.docs.page import CODE, DOCS, ROOT, rows_with

PACKAGE = ROOT / "daemon" / "src" / "llmd"
ARCHITECTURE = (DOCS / "architecture.md").read_text()
GLOSSARY = re.findall(r"^- \*\*(.+?)\*\*: (.*(?:\n  .*)*)", (DOCS / "glossary.md").read_text(), re.MULTILINE)
PLACE = re.compile(r"`([a-z_0-9/]+(?:/|\.py))`")
PLACES = sorted({place for _, text in GLOSSARY for place in PLACE.findall(text)})


def packages() -> set[str]:
    """Return the packages and modules directly below ``llmd``."""
    return {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
    } - {"__init__"}


def test_places_of_the_glossary_exist() -> None:
    assert [place for place in PLACES if not (PACKAGE / place).exists()] == []


def test_the_glossary_has_each_word_once_and_in_order() -> None:
    words = [word.lower() for word, _ in GLOSSARY]
    assert words == sorted(set(words))
    assert len(words) >= 25


def test_most_words_have_a_place() -> None:
    assert sum(bool(PLACE.search(text)) for _, text in GLOSSARY) >= 0.9 * len(GLOSSARY)


def test_the_architecture_has_every_package_and_no_other() -> None:
    named = [
        name for row in rows_with(ARCHITECTURE, "holds") for name in CODE.findall(next(iter(row.values())))
    ]
    assert sorted(named) == sorted(packages())


def test_places_of_the_architecture_exist() -> None:
    places = PLACE.findall(ARCHITECTURE)
    assert [place for place in places if not any((base / place).exists() for base in (PACKAGE, ROOT))] == []


def test_the_architecture_stays_one_page() -> None:
    assert len(ARCHITECTURE.splitlines()) <= 80


def test_places_are_found() -> None:
    assert PLACE.findall("in `api/step.py`, below `pager/`; not `f16`") == ["api/step.py", "pager/"]
