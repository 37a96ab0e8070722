from __future__ import annotations

from typing import Any

import pytest

from llmd.requests.fields import BadRequestError, RequestFields, is_token_id


def test_null_is_as_good_as_absent() -> None:
    fields = RequestFields({"top_k": None, "stream": None, "stop": None, "model": None})
    assert fields.integer("top_k", 0, 9) is None
    assert fields.boolean("stream") is False
    assert fields.strings("stop", 4) == ()
    assert fields.text("model") is None
    assert fields.ignored == ()


def test_what_nobody_read_was_ignored() -> None:
    fields = RequestFields({"model": "m", "user": "me", "nested": {"used": 1, "unused": 2}})
    fields.text("model")
    nested = fields.nested("nested")
    nested.integer("used", 0, 9)
    assert fields.ignored == ("user",)
    assert nested.ignored == ("nested.unused",)


@pytest.mark.parametrize("value", [5, 5.0, "5", "5.0"])
def test_plain_numbers_may_be_written_otherwise(value: Any) -> None:
    assert RequestFields({"n": value}).integer("n", 0, 9) == 5
    assert RequestFields({"n": value}).number("n", 0, 9) == 5.0


@pytest.mark.parametrize("value", [True, "true", "True", 1, "1"])
def test_plain_booleans_may_be_written_otherwise(value: Any) -> None:
    assert RequestFields({"stream": value}).boolean("stream") is True


@pytest.mark.parametrize("value", [5.5, "five", True, [5], {}, "nan", "inf"])
def test_what_is_no_integer_is_refused_by_name(value: Any) -> None:
    with pytest.raises(BadRequestError, match=r"^n must be") as caught:
        RequestFields({"n": value}).integer("n", 0, 9)
    assert caught.value.param == "n"


@pytest.mark.parametrize("value", [-1, 10, "10"])
def test_values_out_of_range_are_refused_with_the_range(value: Any) -> None:
    with pytest.raises(BadRequestError, match="between 0 and 9"):
        RequestFields({"n": value}).integer("n", 0, 9)


@pytest.mark.parametrize(
    ("name", "read", "value"),
    [
        ("stream", lambda f: f.boolean("stream"), "perhaps"),
        ("model", lambda f: f.text("model"), 5),
        ("options", lambda f: f.nested("options"), [1]),
        ("stop", lambda f: f.strings("stop", 2), ["a", 5]),
        ("stop", lambda f: f.strings("stop", 2), ["a", "b", "c"]),
        ("user", lambda f: f.repeated("user"), 5),
        ("ids", lambda f: f.token_ids("ids"), [1, -1]),
        ("ids", lambda f: f.token_ids("ids"), [True]),
        ("ids", lambda f: f.token_ids("ids"), "1"),
        ("temperature", lambda f: f.number("temperature", 0, 2), "hot"),
    ],
)
def test_wrong_types_are_refused_by_name(name: str, read: Any, value: Any) -> None:
    with pytest.raises(BadRequestError, match=rf"^{name} must be") as caught:
        read(RequestFields({name: value}))
    assert caught.value.param == name


@pytest.mark.parametrize("body", [{}, {"model": None}, {"model": ""}])
def test_a_required_text_is_neither_absent_nor_empty(body: dict[str, Any]) -> None:
    assert RequestFields({"model": "tiny"}).required_text("model") == "tiny"
    with pytest.raises(BadRequestError, match=r"^a\.model is required$") as caught:
        RequestFields(body, "a.").required_text("model")
    assert (caught.value.code, caught.value.param) == ("invalid_value", "a.model")


def test_fields_that_are_only_repeated_stay_ignored() -> None:
    fields = RequestFields({"user": "a"})
    assert (fields.repeated("user"), fields.repeated("other")) == ("a", None)
    assert fields.ignored == ("user",)


def test_nested_fields_are_named_with_their_object() -> None:
    with pytest.raises(BadRequestError, match=r"^stream_options\.include_usage must be") as caught:
        RequestFields({"stream_options": {"include_usage": "x"}}).nested("stream_options").boolean(
            "include_usage"
        )
    assert caught.value.param == "stream_options.include_usage"


@pytest.mark.parametrize("value", [None, 0, 0.0, "0", "", [], {}])
def test_neutral_values_are_not_refused(value: Any) -> None:
    RequestFields({"penalty": value}).refuse("penalty", (0,), "why")


@pytest.mark.parametrize("value", [0.5, "0.5", False, True, [1], {"a": 1}])
def test_values_that_change_the_answer_are_refused(value: Any) -> None:
    with pytest.raises(BadRequestError, match="penalty is not supported: why") as caught:
        RequestFields({"penalty": value}).refuse("penalty", (0,), "why")
    assert caught.value.param == "penalty"
    assert caught.value.code == "unsupported_parameter"


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(BadRequestError) as caught:
        RequestFields({"n": "x" * 9999}).integer("n", 0, 9)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("value", [0, 1, (1 << 31) - 1])
def test_token_ids_are_what_an_int32_holds_from_zero(value: object) -> None:
    assert is_token_id(value)


@pytest.mark.parametrize("value", [-1, 1 << 31, 1 << 63, True, False, 1.0, "1", None])
def test_other_values_are_no_token_ids(value: object) -> None:
    assert not is_token_id(value)
