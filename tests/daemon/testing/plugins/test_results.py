"""A check that raises is a failed case with its reason."""

from __future__ import annotations

from llmd.testing.plugins.results import case, unequal


def test_a_case_has_what_its_check_found() -> None:
    assert case("fine", lambda: None).problem == ""
    assert case("bad", lambda: "it leaks").problem == "it leaks"
    raised = case("raises", lambda: str(1 // 0))
    assert (raised.name, raised.problem) == (
        "raises",
        "raised ZeroDivisionError: integer division or modulo by zero",
    )


def test_unequal_values_are_shown() -> None:
    assert unequal(1, 1) == ""
    assert unequal(1, 2) == "returned 1, expected 2"
