from __future__ import annotations

import math
from pathlib import Path

import pytest

from llmd.api.errors import CheckpointError
from llmd.models.json_file import parse_object, read_object


def test_reads_an_object(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"a": [1, 2.5, null, "é"], "b": {"a": true}}')
    assert read_object(path, max_bytes=1000) == {"a": [1, 2.5, None, "é"], "b": {"a": True}}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not valid JSON"),
        (b'{"a": 1', "not valid JSON"),
        (b'{"a": 1} x', "not valid JSON"),
        (b'\xef\xbb\xbf{"a": 1}', "byte order mark"),
        ('{"a": 1}'.encode("utf-16"), "not valid JSON"),
        (b'{"a": "\xff"}', "not valid JSON"),
        (b"[1, 2]", "holds a JSON list"),
        (b"null", "holds a JSON NoneType"),
        (b'{"a": 1, "a": 1}', "the key 'a' occurs twice"),
        (b'{"b": {"a": 1, "a": 2}}', "the key 'a' occurs twice"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"a": 1e999}', "the number '1e999' is too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"a":' * 100_000, "not valid JSON"),
    ],
)
def test_what_is_no_plain_json_object_is_refused(content: bytes, complaint: str) -> None:
    with pytest.raises(CheckpointError, match=complaint) as caught:
        parse_object(content, file="config.json")
    assert caught.value.file == "config.json"
    assert caught.value.hint


def test_a_file_over_its_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"a": 1}')
    with pytest.raises(CheckpointError, match="larger than 7 bytes"):
        read_object(path, max_bytes=7)


def test_infinity_is_read_only_where_it_is_allowed() -> None:
    content = b'{"time_step_limit": [0.0, Infinity]}'
    assert parse_object(content, file="f", allow_infinity=True) == {"time_step_limit": [0.0, math.inf]}
    with pytest.raises(CheckpointError, match="Infinity is not a JSON number"):
        parse_object(content, file="f")
    for other in (b'{"x": NaN}', b'{"x": -Infinity}'):
        with pytest.raises(CheckpointError, match="is not a JSON number"):
            parse_object(other, file="f", allow_infinity=True)
