"""README says how llmd is installed, and no other place contradicts it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.page import DOCS, ROOT

README = (ROOT / "README.md").read_text()
INSTALLS = re.compile(r"(?:pip|uv) install .*\bllmd-.*|install[^.]* `?llmd-[^.]* with pip")
PLACES = [
    ROOT / "README.md",
    *DOCS.glob("*.md"),
    *DOCS.glob("api/*.md"),
    ROOT / "CONTRIBUTING.md",
    ROOT / "daemon" / "README.md",
    *ROOT.glob("plugins/*/README.md"),
    *(ROOT / "guide" / "topics").glob("*.toml"),
    *(ROOT / "daemon" / "src").rglob("*.py"),
]


def installs(place: Path) -> list[str]:
    """Return what a text says about installing llmd."""
    return INSTALLS.findall(place.read_text())


def test_readme_installs_wheels_that_setup_makes() -> None:
    (line,) = installs(ROOT / "README.md")
    command, *names = re.split(r" (?=llmd-)", line)
    assert command == "pip install --no-index --find-links wheelhouse"
    wheels = {path.name.partition("-")[0] for path in (ROOT / "wheelhouse").glob("*.whl")}
    assert names
    assert {name.replace("-", "_") for name in names} <= wheels


def test_no_other_place_says_that_an_index_has_llmd() -> None:
    others = [(place.name, line) for place in PLACES[1:] for line in installs(place)]
    assert [one for one in others if "--find-links wheelhouse" not in one[1]] == []


@pytest.mark.parametrize(
    "text",
    [
        "pip install 'llmd-daemon[tracing]'",
        "elsewhere install `llmd-daemon` and `llmd-backend-cpu` with pip.",
        "elsewhere install the distributions `llmd-daemon` and `llmd-backend-cpu` with pip.",
    ],
)
def test_sentences_that_name_an_index_are_found(text: str) -> None:
    assert INSTALLS.search(text)
