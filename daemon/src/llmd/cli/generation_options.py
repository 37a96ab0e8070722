"""Generation options of ``run`` and ``chat``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from llmd.cli.setting_option import OptionWithDefault
from llmd.cli.typed_text import valid_option

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def number(text: str) -> float:
    """Read a finite number: ``nan`` and ``inf`` have no JSON form and would reach the daemon as null.

    Raises:
        ValueError: the text is not a finite number.
    """
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


# Named after the request fields. The daemon checks the ranges.
OPTIONS = (
    click.option(
        "-n",
        "--max-tokens",
        cls=OptionWithDefault,
        type=int,
        metavar="N",
        default_text="until the context is full",
        help="Maximum length of the answer in tokens.",
    ),
    click.option(
        "--temp",
        "temperature",
        cls=OptionWithDefault,
        type=number,
        metavar="T",
        default_text="the model's default, else 1",
        help="Sampling temperature; 0 always takes the most likely token.",
    ),
    click.option(
        "--top-k",
        cls=OptionWithDefault,
        type=int,
        metavar="K",
        default_text="the model's default, else 0",
        help="Sample from the K most likely tokens; 0: from all.",
    ),
    click.option(
        "--top-p",
        cls=OptionWithDefault,
        type=number,
        metavar="P",
        default_text="the model's default, else 1",
        help="Sample from the most likely tokens whose probabilities sum to P.",
    ),
    click.option(
        "--min-p",
        cls=OptionWithDefault,
        type=number,
        metavar="P",
        default_text="the model's default, else 0",
        help="Drop tokens less likely than P times the most likely one.",
    ),
    click.option(
        "--seed",
        cls=OptionWithDefault,
        type=int,
        metavar="N",
        default_text="random",
        help="Random seed; the same seed samples the same tokens.",
    ),
)
NAMES = {"temp": "temperature"}
KINDS: dict[str, Callable[[str], int | float]] = {
    "max_tokens": int,
    "temperature": number,
    "top_k": int,
    "top_p": number,
    "min_p": number,
    "seed": int,
}


def generation_options(command: Decorated) -> Decorated:
    """Add ``--system`` and the sampling options to a command; the latter arrive as request fields by name."""
    for option in reversed(OPTIONS):
        command = option(command)
    return click.option(
        "--system",
        metavar="TEXT",
        callback=valid_option,
        help="System prompt: instructions before the conversation.",
    )(command)


def given(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that were given."""
    return {name: value for name, value in fields.items() if value is not None}


def read_field(name: str, text: str) -> tuple[str, int | float]:
    """Read ``/set NAME VALUE`` as a request field.

    Raises:
        ValueError: there is no such field, or the value is not a number; the message says which.
    """
    field = NAMES.get(name, name).replace("-", "_")
    if field not in KINDS:
        raise ValueError(f"there is no setting {name}; the settings are {', '.join(KINDS)}")
    try:
        return field, KINDS[field](text)
    except ValueError as error:
        raise ValueError(f"{name} must be a number, not {text!r}") from error
