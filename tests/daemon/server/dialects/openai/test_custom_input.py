from __future__ import annotations

import json
import random

import pytest

from llmd.server.dialects.openai.custom_input import InputReader, arguments_of, input_of

TEXT = 'a "b"\\\n\t/ü😀\x01\u2028'


@pytest.mark.parametrize("escaped", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_whatever_the_cuts_the_text_is_told_as_it_comes(escaped: bool, seed: int) -> None:  # noqa: FBT001
    arguments = json.dumps({"input": TEXT}, ensure_ascii=escaped)
    dice, reader, told, place = random.Random(seed), InputReader(), [], 0
    while place < len(arguments):
        end = place + dice.randint(1, 4)
        told.append(reader.feed(arguments[place:end]))
        place = end
    assert "".join(told) == TEXT
    assert len([text for text in told if text]) > 3
    assert reader.rest(arguments) == ""


def test_what_is_no_text_is_told_at_the_end_as_it_stands() -> None:
    reader = InputReader()
    assert reader.feed('{"input": 3}') == ""
    assert reader.rest('{"input": 3}') == '{"input": 3}'


def test_lines_that_a_model_did_not_escape_are_lines() -> None:
    assert InputReader().feed('{"input": "a\nb') == "a\nb"
    assert input_of('{"input": "a\nb"}') == "a\nb"


def test_an_input_is_written_as_it_is_read() -> None:
    assert input_of(arguments_of(TEXT)) == TEXT


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("", ""),
        ('{"input": "a \\"b\\" ü"}', 'a "b" ü'),
        ('{"x": 1, "input": "a"}', "a"),
        ('{"inp', '{"inp'),
        ('{"input": "', ""),
        ('{"input": "a\\n', "a\n"),
        ('{"input": "a\\', "a"),
        ('{"input": "a\\\\', "a\\"),
        ('{"input": "a\\u00f', "a"),
        ('{"input": "a\\ud83d\\ude0', "a"),
        ('{"input": "a\\ud83d\\ude00', "a😀"),
        ('{"input": "a\\ud83d"', "a"),
        ('{"other": 1}', '{"other": 1}'),
        ("[1]", "[1]"),
    ],
)
def test_of_a_call_that_was_cut_as_much_as_came_is_its_input(arguments: str, text: str) -> None:
    assert input_of(arguments) == text
