"""Options are read like vLLM's, and errors name the wrong value."""

from __future__ import annotations

import math
from typing import Any

import click
import pytest
from click.testing import CliRunner

from llmd.cli.bench.options import SeveralValues, load_options, positive_number


def read(*arguments: str) -> dict[str, Any]:
    """Parse a command line; return the options, or the error message under ``error``."""
    seen: dict[str, Any] = {}

    @click.command(cls=SeveralValues)
    @load_options
    def command(**options: Any) -> None:
        seen.update(options)

    done = CliRunner().invoke(command, arguments)
    return seen if done.exit_code == 0 else {"error": done.output}


def test_defaults_are_those_of_vllm() -> None:
    options = read()
    assert (options["num_prompts"], options["seed"], options["backend"]) == (1000, 0, "openai")
    assert (options["request_rate"], options["burstiness"]) == (math.inf, 1.0)
    assert (options["input_len"], options["range_ratio"], options["prefix_len"]) == (1024, 0.0, 0)
    assert options["percentiles"] == (99.0,)
    assert options["goals_ms"] == options["metadata"] == options["headers"] == {}


@pytest.mark.parametrize("form", [("ttft:500", "tpot:50.5"), ("ttft:500", "--goodput", "tpot:50.5")])
def test_several_values_may_follow_one_option_or_each_its_own(form: tuple[str, ...]) -> None:
    options = read("--goodput", *form, "--metadata", "a=1", "b=x=y", "--num-prompts", "7")
    assert options["goals_ms"] == {"ttft": 500.0, "tpot": 50.5}
    assert options["metadata"] == {"a": "1", "b": "x=y"}
    assert options["num_prompts"] == 7


def test_what_stands_after_two_dashes_is_left_alone() -> None:
    command = SeveralValues(
        "x", params=[click.Option(["--goodput"], multiple=True), click.Argument(["rest"], nargs=-1)]
    )
    context = command.make_context("x", ["--goodput", "a", "b", "--", "--goodput", "c", "d"])
    assert context.params == {"goodput": ("a", "b"), "rest": ("--goodput", "c", "d")}


def test_a_stray_word_after_an_option_of_one_value_is_refused() -> None:
    assert "unexpected extra argument" in read("--seed", "1", "2")["error"]


def test_names_of_vllm_mean_the_same() -> None:
    assert read("--endpoint-type", "openai-chat")["backend"] == "openai-chat"
    assert read("--input-len", "5") == read("--random-input-len", "5")
    assert read("--output-len", "5") == read("--random-output-len", "5")
    assert read("--output-len", "5") == read("--sharegpt-output-len", "5")


def test_metrics_and_percentiles_are_lists() -> None:
    options = read("--percentile-metrics", "itl, e2el", "--metric-percentiles", "50,99.9")
    assert (options["metrics"], options["percentiles"]) == (("itl", "e2el"), (50.0, 99.9))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--goodput", "itl:5"), "ttft:MS, tpot:MS, e2el:MS"),
        (("--goodput", "ttft:soon"), "ttft:soon"),
        (("--goodput", "ttft:-1"), "ttft:-1"),
        (("--goodput", "ttft"), "KEY:VALUE"),
        (("--metadata", "x"), "KEY=VALUE"),
        (("--percentile-metrics", "speed"), "no metric 'speed'"),
        (("--metric-percentiles", "50,x"), "not a list of numbers"),
        (("--metric-percentiles", "101"), "between 0 and 100"),
        (("--request-rate", "0"), "request-rate"),
        (("--request-rate", "nan"), "request-rate"),
        (("--max-concurrency", "0"), "max-concurrency"),
        (("--num-prompts", "0"), "num-prompts"),
        (("--temperature", "inf"), "temperature"),
    ],
)
def test_wrong_values_are_refused_by_name(arguments: tuple[str, ...], said: str) -> None:
    assert said in read(*arguments)["error"]


def test_a_rate_is_above_zero_and_may_be_infinite() -> None:
    assert (positive_number("0.5"), positive_number("inf")) == (0.5, math.inf)
    for text in ("0", "-1", "nan", "much"):
        with pytest.raises(ValueError, match=text):
            positive_number(text)
