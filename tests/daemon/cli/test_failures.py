"""Errors as text and as JSON objects."""

from __future__ import annotations

import json

import click
import pytest

from llmd.api.errors import NotFoundError
from llmd.cli.failures import show_failure, show_usage

ERROR = NotFoundError("there is no model 'x'", hint="see `llmd list`")


def test_the_hint_stands_below_the_message(capsys: pytest.CaptureFixture[str]) -> None:
    show_failure(ERROR, as_json=False)
    assert capsys.readouterr() == ("", "llmd: there is no model 'x'\n      see `llmd list`\n")


def test_an_error_without_a_hint_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    show_failure(NotFoundError("there is no model 'x'"), as_json=False)
    assert capsys.readouterr().err == "llmd: there is no model 'x'\n"


def test_every_error_has_the_same_shape_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    show_failure(ERROR, as_json=True)
    show_usage(click.UsageError("no such option"), as_json=True)
    first, second = (json.loads(line)["error"] for line in capsys.readouterr().err.splitlines())
    assert first == {"type": "NotFoundError", "message": "there is no model 'x'", "hint": "see `llmd list`"}
    assert first.keys() == second.keys()


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        (
            "--port",
            "there is no option --port; `addr` sets where the daemon listens (llmd serve --addr HOST:PORT)",
        ),
        ("--model", "there is no option --model; it is an argument: llmd COMMAND MODEL"),
        ("--max-num-seqs", "there is no option --max-num-seqs; `--slots` of `llmd serve` means the same"),
        ("--max-ctx", "there is no option --max-ctx; `llmd serve` takes --max-ctx"),
        ("--jsno", "there is no option --jsno; did you mean --json?"),
        ("--xyzzy", "there is no option --xyzzy\n"),
    ],
)
def test_an_unknown_option_is_answered_with_the_right_one(
    capsys: pytest.CaptureFixture[str], flag: str, says: str
) -> None:
    show_usage(click.NoSuchOption(flag, possibilities=["--json", "--help", "--slots"]), as_json=False)
    assert says in capsys.readouterr().err


def test_a_usage_error_shows_what_was_typed_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    command = click.Command("stop", params=[click.Argument(["model"])])
    context = click.Context(
        command, info_name="stop", parent=click.Context(click.Group("llmd"), info_name="llmd")
    )
    error = click.UsageError("Missing argument 'MODEL'.", context)
    show_usage(error, as_json=False)
    assert capsys.readouterr().err == (
        "llmd: missing argument 'MODEL'\n      usage: llmd stop [OPTIONS] MODEL; see `llmd stop --help`\n"
    )
    show_usage(error, as_json=True)
    assert json.loads(capsys.readouterr().err)["error"]["hint"] == "see `llmd stop --help`"


def test_a_usage_error_of_no_command_names_the_help_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    show_usage(click.UsageError("no such option"), as_json=False)
    assert capsys.readouterr().err == "llmd: no such option\n      see `llmd --help`\n"
