"""docs/features.md and the pages of the interface: each line is shown by tests that exist."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.page import DOCS, INTERFACE, ROOT, linked_tests, rows_with, tables

PAGE = (DOCS / "features.md").read_text()
FEATURES = rows_with(PAGE, "state")
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if page.parent.name not in {"decisions", "plans"}]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_each_linked_test_exists(page: Path) -> None:
    shown = set(linked_tests(page.read_text(), page.parent))
    assert [test for test in shown if not test.exists] == []


def test_a_test_that_does_not_exist_would_be_noticed() -> None:
    (shown,) = linked_tests("[makes coffee](../tests/docs/test_features.py)")
    assert (shown.file.name, shown.name, shown.exists) == ("test_features.py", "test_makes_coffee", False)
    (shown,) = linked_tests("[each feature is listed once](../tests/docs/test_features.py)")
    assert shown.exists
    (shown,) = linked_tests("[each feature is listed once](../../tests/docs/test_features.py)", DOCS / "api")
    assert shown.exists


def test_each_feature_is_listed_once() -> None:
    assert set(Counter(row["id"] for row in FEATURES).values()) == {1}
    assert len(FEATURES) >= 75


def test_what_works_is_shown_and_what_comes_later_is_not() -> None:
    assert {row["state"] for row in FEATURES} <= {"works", "partly", "later", "dropped"}
    shown = {row["id"] for row in FEATURES if linked_tests(row["shown by"])}
    assert shown == {row["id"] for row in FEATURES if row["state"] in {"works", "partly"}}


def test_what_was_dropped_says_why() -> None:
    dropped = [row for row in FEATURES if row["state"] == "dropped"]
    decisions = [re.findall(r"\]\((decisions/[^)]+)\)", row["shown by"]) for row in dropped]
    assert [len(links) for links in decisions] == [1] * len(dropped)
    assert [link for (link,) in decisions if not (DOCS / link).is_file()] == []


def test_what_this_milestone_alone_asks_for_has_begun() -> None:
    assert [row["id"] for row in FEATURES if row["milestone"] == "A" and row["state"] == "later"] == []


def test_a_feature_links_at_most_two_tests() -> None:
    rows = rows_with(PAGE, "shown by")
    assert [row for row in rows if len(linked_tests(row["shown by"])) > 2] == []


def test_every_behaviour_is_shown() -> None:
    behaviours = rows_with(PAGE, "behaviour")
    assert [row for row in behaviours if not linked_tests(row["shown by"])] == []
    assert len(behaviours) >= 35


@pytest.mark.parametrize("page", INTERFACE, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_line_of_the_interface_is_shown(page: Path) -> None:
    found = list(tables(page.read_text()))
    if page.parent.name == "api":
        assert [table for table in found if "shown by" not in table[0]] == []
    lines = [row for table in found for row in table if "shown by" in row]
    assert [row for row in lines if not linked_tests(row["shown by"], page.parent)] == []
    assert lines


def test_the_interface_has_all_its_lines() -> None:
    assert sum(len(rows_with(page.read_text(), "shown by")) for page in INTERFACE) >= 300


def test_features_links_every_page_of_the_interface() -> None:
    named = set(re.findall(r"\]\(([^)#]+\.md)", PAGE))
    assert {str(page.relative_to(DOCS)) for page in INTERFACE} <= named
    assert (ROOT / "docs" / "features.md").stat().st_size < 40_000
