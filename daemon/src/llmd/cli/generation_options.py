"""Options of ``run`` and ``chat`` that say how answers are made."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from llmd.cli.setting_option import OptionWithDefault
from llmd.cli.typed_text import valid_option

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def number(text: str) -> float:
    """Read a number that JSON has: ``nan`` and ``inf`` would reach the daemon as nothing at all.

    Raises:
        ValueError: it is none.
    """
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


# Named after the request fields that they become; ranges are the daemon's to check.
OPTIONS = (
    click.option(
        "-n",
        "--max-tokens",
        cls=OptionWithDefault,
        type=int,
        metavar="N",
        default_text="until the context is full",
        help="Longest answer in tokens.",
    ),
    click.option(
        "--temp",
        "temperature",
        cls=OptionWithDefault,
        type=number,
        metavar="T",
        default_text="the model's own, else 1",
        help="Temperature; 0 takes the likeliest token.",
    ),
    click.option(
        "--top-k",
        cls=OptionWithDefault,
        type=int,
        metavar="K",
        default_text="the model's own, else 0",
        help="Draw from the K likeliest tokens; 0: from all.",
    ),
    click.option(
        "--top-p",
        cls=OptionWithDefault,
        type=number,
        metavar="P",
        default_text="the model's own, else 1",
        help="Draw from the likeliest tokens that together reach P.",
    ),
    click.option(
        "--min-p",
        cls=OptionWithDefault,
        type=number,
        metavar="P",
        default_text="the model's own, else 0",
        help="Drop tokens less likely than P times the likeliest.",
    ),
    click.option(
        "--seed",
        cls=OptionWithDefault,
        type=int,
        metavar="N",
        default_text="another one each time",
        help="Draw the same tokens each time.",
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
    """Give a command ``--system`` and the sampling options; the latter come as request fields by name."""
    for option in reversed(OPTIONS):
        command = option(command)
    return click.option(
        "--system",
        metavar="TEXT",
        callback=valid_option,
        help="Instructions that stand before the conversation.",
    )(command)


def given(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def read_field(name: str, text: str) -> tuple[str, int | float]:
    """Read ``/set NAME VALUE`` as a request field.

    Raises:
        ValueError: there is no such field, or the value is no number; the message says which.
    """
    field = NAMES.get(name, name).replace("-", "_")
    if field not in KINDS:
        raise ValueError(f"there is no setting {name}; there are {', '.join(KINDS)}")
    try:
        return field, KINDS[field](text)
    except ValueError as error:
        raise ValueError(f"{name} must be a number, not {text!r}") from error
