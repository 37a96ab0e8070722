from __future__ import annotations

from typing import Any

import pytest

from llmd.requests.fields import BadRequestError, RequestFields
from llmd.requests.mixed_text import encode_mixed, read_mixed_texts


def read(value: Any, most: int = 3) -> tuple[Any, ...]:
    return read_mixed_texts(RequestFields({"prompt": value}), "prompt", most)


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("a", ("a",)),
        ("", ("",)),
        ([1, 2], ((1, 2),)),
        ([1, "a", 2], ((1, "a", 2),)),
        (["a", 1], (("a", 1),)),
        (["a", "b"], ("a", "b")),
        (["a", [1, "b"]], ("a", (1, "b"))),
        ({"prompt_string": "a"}, ("a",)),
        ({"prompt_string": "a", "multimodal_data": []}, ("a",)),
        (["a", {"prompt_string": "b"}, [1]], ("a", "b", (1,))),
    ],
)
def test_inputs_come_in_every_form(value: Any, texts: tuple[Any, ...]) -> None:
    assert read(value) == texts


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        [],
        [[]],
        [-1],
        [1 << 31],
        [True],
        [1.5],
        ["a", None],
        [1, [2]],
        [1, {"prompt_string": "a"}],
        {},
        {"text": "a"},
        {"prompt_string": 5},
        {"prompt_string": ["a"]},
        ["a"] * 4,
    ],
)
def test_what_is_no_input_is_refused(value: Any) -> None:
    with pytest.raises(BadRequestError, match="prompt must be text, token ids"):
        read(value)


def test_images_are_refused_by_name() -> None:
    given = {"prompt_string": "<__media__>", "multimodal_data": ["AA=="]}
    for value in (given, ["a", given]):
        with pytest.raises(BadRequestError, match=r"prompt.multimodal_data is not supported") as caught:
            read(value)
        assert caught.value.param == "prompt"


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("ab", (0, 97, 98)),
        ((5, 6), (5, 6)),
        (("ab", 5, "c"), (0, 97, 98, 5, 99)),
        ((5, "ab"), (5, 97, 98)),
    ],
)
def test_only_a_text_that_begins_an_input_is_encoded_as_a_whole_one(text: Any, ids: tuple[int, ...]) -> None:
    assert encode_mixed(text, lambda whole: [0, *whole.encode()], lambda part: [*part.encode()]) == ids
