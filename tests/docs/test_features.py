"""docs/features.md: each feature's state is shown by tests that exist."""

from __future__ import annotations

import re
from collections import Counter

from tests.docs.page import DOCS, linked_tests, rows_with, tables

PAGE = (DOCS / "features.md").read_text()
FEATURES = rows_with(PAGE, "state")


def test_each_linked_test_exists() -> None:
    assert [shown for shown in set(linked_tests(PAGE)) if not shown.exists] == []


def test_a_test_that_does_not_exist_would_be_noticed() -> None:
    (shown,) = linked_tests("[makes coffee](../tests/docs/test_features.py)")
    assert (shown.file.name, shown.name, shown.exists) == ("test_features.py", "test_makes_coffee", False)
    (shown,) = linked_tests("[each feature is listed once](../tests/docs/test_features.py)")
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


def test_every_line_of_the_interface_is_shown() -> None:
    lines = [row for table in tables(PAGE) for row in table if "state" not in row]
    assert [row for row in lines if not linked_tests(row["shown by"])] == []
    assert len(lines) >= 100
