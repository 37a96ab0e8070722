from __future__ import annotations

from typing import Any

import pytest

from llmd.requests.fields import BadRequestError, RequestFields
from llmd.requests.named_tokens import read_breakers, read_words


def fields(value: Any) -> RequestFields:
    return RequestFields({"name": value})


def test_bad_words_are_texts() -> None:
    assert read_words(fields(["a", " b"]), "name") == ("a", " b")
    assert read_words(fields(None), "name") == ()
    for value in ([""], [5]):
        with pytest.raises(BadRequestError):
            read_words(fields(value), "name")


def test_no_breakers_are_not_the_same_as_an_empty_list_of_them() -> None:
    assert read_breakers(fields(None), "name") is None
    assert read_breakers(fields([]), "name") == ()
    assert read_breakers(fields(["x", "yz"]), "name") == ("x", "yz")


@pytest.mark.parametrize("value", [["x" * 41], [""], ["x"] * 17])
def test_breakers_that_are_too_long_empty_or_too_many_are_refused(value: list[str]) -> None:
    with pytest.raises(BadRequestError) as caught:
        read_breakers(fields(value), "name")
    assert caught.value.param == "name"
