from __future__ import annotations

from collections.abc import Callable

import pytest

from llmd.api import CheckpointError, UnsupportedModelError
from llmd.builtin.architectures.config_fields import ConfigFields

Read = Callable[[ConfigFields], object]

READS: dict[str, Read] = {
    "size": lambda fields: fields.size("x"),
    "count": lambda fields: fields.count("x"),
    "positive": lambda fields: fields.positive("x"),
    "flag": lambda fields: fields.flag("x"),
    "text": lambda fields: fields.text("x"),
    "choice": lambda fields: fields.choice("x", {"a": 1}),
    "positives": lambda fields: fields.positives("x", 2),
    "names": lambda fields: fields.names("x", 2, ("a", "b")),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("values", [{}, {"x": None}])
def test_names_a_missing_field(read: Read, values: dict[str, object]) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json: x is missing") as caught:
        read(ConfigFields(values))
    assert caught.value.file == "config.json"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ("size", 0, "0"),
        ("size", -64, "-64"),
        ("size", True, "True"),
        ("size", 64.0, r"64\.0"),
        ("size", "64", "'64'"),
        ("size", 10**9, "1000000000"),
        ("count", -1, "-1"),
        ("positive", 0, "0"),
        ("positive", float("nan"), "nan"),
        ("positive", float("inf"), "inf"),
        ("positive", 10**400, "1000"),
        ("positive", "1e-5", "'1e-5'"),
        ("positive", True, "True"),
        ("flag", 1, "1"),
        ("flag", "false", "'false'"),
        ("text", 5, "5"),
        ("positives", [1.0, "2"], r"\[1\.0, '2'\]"),
        ("positives", {"a": 1}, "{'a': 1}"),
        ("names", "ab", "'ab'"),
    ],
)
def test_refuses_a_value_of_another_type_or_range_and_shows_it(kind: str, value: object, shown: str) -> None:
    with pytest.raises(CheckpointError, match=rf"x is {shown}.*expected"):
        READS[kind](ConfigFields({"x": value}))


@pytest.mark.parametrize(("kind", "value"), [("positives", [1.0]), ("names", ["a", "b", "a"])])
def test_refuses_a_list_of_another_length(kind: str, value: object) -> None:
    with pytest.raises(CheckpointError, match=r"x has \d entries, expected 2"):
        READS[kind](ConfigFields({"x": value}))


@pytest.mark.parametrize(
    ("kind", "value"), [("choice", "mrope"), ("names", ["a", "mrope"]), ("names", ["a", 7])]
)
def test_an_unknown_name_is_unsupported_and_the_known_ones_are_listed(kind: str, value: object) -> None:
    with pytest.raises(UnsupportedModelError, match=r"x is ('mrope'|7).*supported: a"):
        READS[kind](ConfigFields({"x": value}))


def test_defaults_stand_for_absent_fields_only() -> None:
    fields = ConfigFields({"present": 2, "null": None})
    assert (fields.size("present", 1), fields.size("null", 1), fields.size("absent", 1)) == (2, 1, 1)


def test_null_and_absent_differ_where_null_switches_something_off() -> None:
    fields = ConfigFields({"present": 2, "null": None})
    read = [fields.positive_or_null(name, 50.0) for name in ("present", "null", "absent")]
    assert read == [2.0, None, 50.0]
    assert [fields.size_or_null(name, 50) for name in ("present", "null", "absent")] == [2, None, 50]


def test_fields_of_an_object_are_named_with_their_path() -> None:
    inside = ConfigFields({"rope_scaling": {"factor": -1}}).inside("rope_scaling")
    with pytest.raises(CheckpointError, match=r"rope_scaling\.factor is -1"):
        inside.positive("factor")


def test_an_absent_object_has_no_fields_and_a_list_is_no_object() -> None:
    assert "factor" not in ConfigFields({"rope_scaling": None}).inside("rope_scaling")
    with pytest.raises(CheckpointError, match="expected an object"):
        ConfigFields({"rope_scaling": [1]}).inside("rope_scaling")


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(CheckpointError) as caught:
        ConfigFields({"x": "y" * 1000}).size("x")
    assert len(caught.value.message) < 200
