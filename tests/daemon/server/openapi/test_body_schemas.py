from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Required, TypedDict

from llmd.requests.number import Number
from llmd.server.openapi.body_schemas import Schema, body_schema


class Part(TypedDict):
    """A part of a body."""

    text: str


class First(TypedDict, total=False):
    parts: Required[Sequence[Part]]
    """The parts."""
    top_p: Annotated[float | None, Number(0.0, 1.0, excludes_low=True)]
    seed: Annotated[int | None, Number(-(1 << 256), 1 << 256, whole=True)]


class Second(TypedDict, total=False):
    top_p: Annotated[float | None, Number(0.0, 0.5)]
    """The last one counts."""


def test_a_body_has_the_fields_of_its_parts_with_docstrings_and_ranges() -> None:
    components: dict[str, Schema] = {}
    schema = body_schema((First, Second), "tag", components)
    assert schema["required"] == ["parts"]
    assert schema["properties"]["parts"] == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/tag.Part"},
        "description": "The parts.",
    }
    top_p = schema["properties"]["top_p"]
    assert (top_p["minimum"], top_p["maximum"], top_p["description"]) == (0, 0.5, "The last one counts.")
    assert components["tag.Part"]["required"] == ["text"]


def test_ends_of_ranges_are_excluded_where_the_reader_excludes_them() -> None:
    top_p = body_schema((First,), "tag", {})["properties"]["top_p"]
    assert (top_p["exclusiveMinimum"], top_p["maximum"]) == (0, 1)


def test_bounds_that_readers_of_json_would_round_are_left_out() -> None:
    assert not {"minimum", "maximum"} & body_schema((First,), "tag", {})["properties"]["seed"].keys()
