from __future__ import annotations

from typing import TypedDict

from llmd.config.field_docs import field_docs


class Base(TypedDict, total=False):
    """A base."""

    first: int
    """On
    two lines."""
    bare: int


class Derived(Base, total=False):
    second: str
    """Of its own."""


def test_docstrings_are_found_in_a_class_and_its_bases() -> None:
    assert field_docs(Derived) == {"first": "On two lines.", "second": "Of its own."}


def test_a_class_that_is_not_in_the_source_has_none() -> None:
    assert field_docs(TypedDict("Made", {"a": int})) == {}  # type: ignore[operator]
