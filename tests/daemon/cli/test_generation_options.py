"""Sampling options become request fields."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from llmd.cli.generation_options import generation_options, given, read_field


@click.command()
@generation_options
def command(**fields: Any) -> None:
    click.echo(repr(sorted(given(fields).items())))


def fields_of(*arguments: str) -> str:
    return CliRunner().invoke(command, arguments).output.strip()


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["-n", "5"], ("max_tokens", 5)),
        (["--max-tokens", "5"], ("max_tokens", 5)),
        (["--temp", "0"], ("temperature", 0.0)),
        (["--top-k", "3"], ("top_k", 3)),
        (["--top-p", "0.5"], ("top_p", 0.5)),
        (["--min-p", "0.1"], ("min_p", 0.1)),
        (["--seed", "7"], ("seed", 7)),
        (["--system", "be brief"], ("system", "be brief")),
        (["--system", "caf\udce9"], ("system", "caf\ufffd")),
    ],
)
def test_each_option_is_a_field_and_what_was_not_typed_is_none(
    arguments: list[str], field: tuple[str, object]
) -> None:
    assert fields_of(*arguments) == repr([field])


@pytest.mark.parametrize("option", ["--temp", "--top-p", "--min-p"])
@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999"])
def test_refuses_numbers_that_a_request_cannot_carry(option: str, text: str) -> None:
    assert f"Invalid value for '{option}'" in fields_of(f"{option}={text}")


def test_reads_settings_as_they_are_typed_in_a_chat() -> None:
    assert read_field("temp", "0.5") == ("temperature", 0.5)
    assert read_field("max-tokens", "9") == ("max_tokens", 9)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("heat", "1", "no setting heat"),
        ("seed", "1.5", "must be a number, not '1.5'"),
        ("top_k", "", "top_k"),
        ("temp", "nan", "temp must be a number, not 'nan'"),
    ],
)
def test_refuses_unknown_settings_and_what_is_no_number(name: str, value: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_field(name, value)
