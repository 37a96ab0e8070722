from __future__ import annotations

import json

from llmd.server.http.json_line import encode_json


def test_text_stays_utf8_on_one_line_and_line_separators_are_escaped() -> None:
    encoded = encode_json({"text": "naïve\n\u2028\u2029🙂"})
    assert "naïve".encode() in encoded
    assert "🙂".encode() in encoded
    assert len(encoded.decode().splitlines()) == 1
    assert json.loads(encoded) == {"text": "naïve\n\u2028\u2029🙂"}


def test_what_is_no_number_is_null() -> None:
    assert encode_json([float("nan"), float("inf")]) == b"[null,null]"
