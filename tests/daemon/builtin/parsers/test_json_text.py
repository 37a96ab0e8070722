from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd.builtin.parsers.cursor import Cursor, MalformedError, Script
from llmd.builtin.parsers.json_text import MAX_DEPTH, read_object, read_string, read_value


def rest_after(script_of: Any, text: str) -> str:
    """Feed a text to a script character by character; return the rest."""
    cursor = Cursor()
    script: Script[Any] = script_of(cursor)
    for place, char in enumerate(text):
        cursor.push(char)
        if next(script, "done") == "done":
            return text[place:] if cursor.held and cursor.place <= place else text[place + 1 :]
    cursor.push("", ended=True)
    assert next(script, "done") == "done"
    return ""


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(values, st.booleans(), st.sampled_from([None, 2]))
def test_reads_all_json_and_nothing_more(value: Any, ascii_only: bool, indent: int | None) -> None:  # noqa: FBT001
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert rest_after(read_value, text) == ""
    assert rest_after(read_value, f"{text} ,") == " ,"


@pytest.mark.parametrize(
    "text",
    [
        "{'a': 1}",
        '{"a" 1}',
        '{"a": 1,}',
        '{"a": tru}',
        '{"a": 01}',
        '{"a": NaN}',
        '{"a": "\n"}',
        '{"a": "\\x"}',
        '{"a": "\\u12g4"}',
        '{"a": [1 2]}',
        '{"a": [1,]}',
        '{"a": 1',
        '{"a',
        "{",
        "[]",
        "",
        '{"a":' * (MAX_DEPTH + 2),
    ],
)
def test_what_is_no_object_is_malformed(text: str) -> None:
    with pytest.raises(MalformedError):
        rest_after(read_object, text)


@given(st.text())
def test_string_is_what_it_means(text: str) -> None:
    cursor = Cursor()
    cursor.push(json.dumps(text), ended=True)
    script = read_string(cursor)
    with pytest.raises(StopIteration) as stopped:
        next(script)
    assert stopped.value.value == text
