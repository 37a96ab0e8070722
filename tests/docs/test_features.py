"""docs/features.md: each feature's state is shown by tests that exist."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.docs.page import DOCS, Row, Shown, linked_tests, rows_with, tables

PAGE = (DOCS / "features.md").read_text()
FEATURES = rows_with(PAGE, "state")


@pytest.mark.parametrize("shown", sorted(set(linked_tests(PAGE)), key=str), ids=lambda shown: shown.name)
def test_each_linked_test_exists(shown: Shown) -> None:
    assert shown.exists


def test_a_test_that_does_not_exist_would_be_noticed() -> None:
    (shown,) = linked_tests("[makes coffee](../tests/docs/test_features.py)")
    assert (shown.file.name, shown.name, shown.exists) == ("test_features.py", "test_makes_coffee", False)
    (shown,) = linked_tests("[each feature is listed once](../tests/docs/test_features.py)")
    assert shown.exists


def test_each_feature_is_listed_once() -> None:
    assert set(Counter(row["id"] for row in FEATURES).values()) == {1}
    assert len(FEATURES) >= 75


@pytest.mark.parametrize("row", FEATURES, ids=lambda row: row["id"])
def test_what_works_is_shown_and_what_comes_later_is_not(row: Row) -> None:
    assert row["state"] in {"works", "partly", "later", "dropped"}
    assert bool(linked_tests(row["shown by"])) == (row["state"] in {"works", "partly"})


@pytest.mark.parametrize(
    "row", [row for row in FEATURES if row["state"] == "dropped"], ids=lambda row: row["id"]
)
def test_what_was_dropped_says_why(row: Row) -> None:
    (decision,) = re.findall(r"\]\((decisions/[^)]+)\)", row["shown by"])
    assert (DOCS / decision).is_file()


def test_what_this_milestone_alone_asks_for_has_begun() -> None:
    assert [row["id"] for row in FEATURES if row["milestone"] == "A" and row["state"] == "later"] == []


def test_every_line_of_the_interface_is_shown() -> None:
    lines = [row for table in tables(PAGE) for row in table if "state" not in row]
    assert [row for row in lines if not linked_tests(row["shown by"])] == []
    assert len(lines) >= 100
