"""Text with bytes that are not UTF-8 becomes text that a request can carry."""

from __future__ import annotations

import io

import pytest

from llmd.cli.typed_text import keep_bytes, valid


def test_bytes_that_are_no_utf_8_are_replaced_and_everything_else_is_kept() -> None:
    assert valid("caf\udce9 – café 🎈") == "caf\ufffd – café 🎈"


def test_standard_input_reads_them_as_the_command_line_does() -> None:
    strict = io.TextIOWrapper(io.BytesIO(b"caf\xe9\n"), encoding="utf-8", errors="strict")
    keep_bytes(strict)
    assert valid(strict.readline()) == "caf\ufffd\n"
    keep_bytes(io.StringIO("it may be replaced"))


@pytest.mark.parametrize("text", ["", "plain"])
def test_valid_text_stays_as_it_is(text: str) -> None:
    assert valid(text) == text
