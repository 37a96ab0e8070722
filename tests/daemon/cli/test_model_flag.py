"""The model may be given with -m."""

from __future__ import annotations

from typing import Any

import click
import pytest

from llmd.cli.model_flag import ModelCommand


@click.command(cls=ModelCommand)
@click.argument("model")
@click.argument("text", required=False)
@click.option("-n", "--max-tokens", type=int)
@click.option("--system")
@click.option("--json", "as_json", is_flag=True)
def command(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in {None, False}}


def typed(*words: str) -> Any:
    return command.main(list(words), standalone_mode=False)


@pytest.mark.parametrize(
    "words",
    [
        ("guide", "Hi"),
        ("-m", "guide", "Hi"),
        ("Hi", "--model", "guide"),
        ("--model=guide", "--", "Hi"),
    ],
)
def test_the_model_is_the_first_argument_wherever_its_flag_stands(words: tuple[str, ...]) -> None:
    assert typed(*words) == {"model": "guide", "text": "Hi"}


def test_values_of_other_options_stay_theirs() -> None:
    values = typed("guide", "--system", "-m", "--json", "-n", "3", "--", "--model")
    assert values == {"model": "guide", "system": "-m", "as_json": True, "max_tokens": 3, "text": "--model"}


def test_a_flag_of_another_tool_is_no_cluster_of_letters() -> None:
    with pytest.raises(click.NoSuchOption) as refused:
        typed("guide", "-ngl", "99")
    assert refused.value.option_name == "-ngl"


def test_a_flag_without_its_model_is_an_error() -> None:
    with pytest.raises(click.BadOptionUsage, match="requires an argument"):
        typed("Hi", "-m")
    assert "--model" not in command.get_help(click.Context(command))
