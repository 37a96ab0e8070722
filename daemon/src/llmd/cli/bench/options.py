"""The options of ``llmd bench serve``: names, meanings and defaults are those of ``vllm bench serve``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from llmd.cli.generation_options import number

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

METRICS = ("ttft", "tpot", "itl", "e2el", "client_queue_time", "e2el_including_client_queue")
GOALS = ("ttft", "tpot", "e2el")
SAMPLING = ("temperature", "top_p", "top_k", "min_p")
"""Sent with each request where they were typed; ranges are the server's to check."""


class SeveralValues(click.Command):
    """A command whose repeatable options also take their values one after another, as vLLM's do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        repeatable = {
            name
            for parameter in self.params
            if isinstance(parameter, click.Option) and parameter.multiple
            for name in parameter.opts
        }
        return super().parse_args(ctx, list(_each_named(args, repeatable)))


def _each_named(words: Iterable[str], repeatable: set[str]) -> Iterable[str]:
    """``--goodput a b`` as ``--goodput a --goodput b``."""
    option, has_value = "", False
    remaining = iter(words)
    for word in remaining:
        if word == "--":
            yield from (word, *remaining)
            return
        if word.startswith("-"):
            option, has_value = (word if word in repeatable else ""), False
        elif option and has_value:
            yield option
        else:
            has_value = bool(option)
        yield word


def positive_number(text: str) -> float:
    """Read a number above 0, which may be ``inf``.

    Raises:
        ValueError: it is none.
    """
    value = float(text)
    if not value > 0:
        raise ValueError(text)
    return value


def pair(separator: str) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str]]:
    """Reads repeated ``KEY=VALUE``, or with another sign between."""

    def read(_ctx: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
        pairs = {}
        for text in texts:
            key, given, value = text.partition(separator)
            if not given or not key.strip():
                raise click.BadParameter(f"{text!r} is not KEY{separator}VALUE")
            pairs[key.strip()] = value.strip()
        return pairs

    return read


def read_goals(ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, float]:
    """Goals in milliseconds by metric."""
    goals = {}
    for name, text in pair(":")(ctx, parameter, texts).items():
        try:
            goals[name] = number(text)
        except ValueError:
            goals[name] = math.nan
        if name not in GOALS or not goals[name] >= 0:
            raise click.BadParameter(f"{name}:{text} is none of {', '.join(f'{goal}:MS' for goal in GOALS)}")
    return goals


def read_metrics(_ctx: click.Context, _parameter: click.Parameter, text: str) -> tuple[str, ...]:
    """Names of metrics, separated by commas."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if unknown := [name for name in names if name not in METRICS]:
        raise click.BadParameter(f"there is no metric {unknown[0]!r}; there are {', '.join(METRICS)}")
    return names


def read_percentiles(_ctx: click.Context, _parameter: click.Parameter, text: str) -> tuple[float, ...]:
    """Numbers from 0 to 100, separated by commas."""
    try:
        percentiles = tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise click.BadParameter(f"{text!r} are no numbers separated by commas") from error
    if not all(0 <= percentile <= 100 for percentile in percentiles):
        raise click.BadParameter("percentiles are numbers from 0 to 100")
    return percentiles


COUNT = click.IntRange(min=1)
WHERE = (
    click.option("--base-url", metavar="URL", help="The server: http://HOST:PORT or unix:PATH; without it a daemon is started."),
    click.option("--model", metavar="NAME", help="The model; by default the server's first. A daemon that is started serves it."),
    click.option("--tokenizer", metavar="MODEL|DIRECTORY", help="Where the tokenizer is, if not with the model."),
    click.option("--backend", "--endpoint-type", "backend", type=click.Choice(["openai", "openai-chat", "vllm"]), default="openai",
                 help="The API: completions or chat; vllm means openai."),
    click.option("--endpoint", metavar="PATH", help="The route, if not the usual one of the API."),
    click.option("--header", "headers", multiple=True, callback=pair("="), metavar="KEY=VALUE", help="Send this header, such as an API key; repeatable."),
)  # fmt: skip
LOAD = (
    click.option("--num-prompts", type=COUNT, default=1000, help="How many requests."),
    click.option("--num-warmups", type=click.IntRange(min=0), default=0, help="Requests before, which are not counted."),
    click.option("--seed", type=click.IntRange(min=0), default=0, help="Draw the same prompts, lengths and times."),
    click.option("--request-rate", type=positive_number, metavar="N", default=math.inf, help="Requests per second; inf: all at once."),
    click.option("--burstiness", type=positive_number, metavar="N", default=1.0, help="1: Poisson arrivals; less: in bursts; more: evenly."),
    click.option("--ramp-up-strategy", type=click.Choice(["linear", "exponential"]), help="Change the rate over the load."),
    click.option("--ramp-up-start-rps", type=positive_number, metavar="N", help="Requests per second at the start."),
    click.option("--ramp-up-end-rps", type=positive_number, metavar="N", help="Requests per second at the end."),
    click.option("--max-concurrency", type=COUNT, help="Requests that run at once; others wait in the client."),
    click.option("--ignore-eos", is_flag=True, help="Answers run to their full length; the random data set always does."),
    click.option("--temperature", type=number, metavar="T", help="Temperature; the server's own where it is not given."),
    click.option("--top-p", type=number, metavar="P", help="Draw from the likeliest tokens that together reach P."),
    click.option("--top-k", type=int, metavar="K", help="Draw from the K likeliest tokens."),
    click.option("--min-p", type=number, metavar="P", help="Drop tokens less likely than P times the likeliest."),
    click.option("--extra-body", metavar="JSON", help="Fields that are sent with each request."),
)  # fmt: skip
DATA = (
    click.option("--dataset-name", type=click.Choice(["random", "sharegpt"]), default="random", help="Where prompts come from."),
    click.option("--dataset-path", type=click.Path(path_type=Path), help="The file of conversations, for sharegpt."),
    click.option("--random-input-len", "--input-len", "input_len", type=click.IntRange(min=0), default=1024, help="Tokens of a random prompt."),
    click.option("--random-output-len", "--sharegpt-output-len", "--output-len", "output_len", type=COUNT, help="Tokens of an answer; by default 128, or as in the file."),
    click.option("--random-range-ratio", "range_ratio", type=float, default=0.0, help="Lengths vary by this share, from 0 to below 1."),
    click.option("--random-prefix-len", "prefix_len", type=click.IntRange(min=0), default=0, help="Tokens that all prompts begin with."),
    click.option("--token-ids", is_flag=True, help="Send random prompts as token ids: exact lengths; completions alone."),
)  # fmt: skip
RESULT = (
    click.option("--percentile-metrics", "metrics", default="ttft,tpot,itl,e2el", callback=read_metrics, help="Metrics to report."),
    click.option("--metric-percentiles", "percentiles", default="99", callback=read_percentiles, help="Percentiles to report."),
    click.option("--goodput", "goals_ms", multiple=True, callback=read_goals, metavar="METRIC:MS", help="What a good request keeps: ttft, tpot, e2el; repeatable."),
    click.option("--label", help="A name for the result; by default that of the API."),
    click.option("--metadata", multiple=True, callback=pair("="), metavar="KEY=VALUE", help="Keep this in the result; repeatable."),
    click.option("--save-result", is_flag=True, help="Write the result to a file."),
    click.option("--save-detailed", is_flag=True, help="Keep times, text and error of each request, too."),
    click.option("--append-result", is_flag=True, help="Add the result to the file, as one line."),
    click.option("--result-dir", type=click.Path(path_type=Path), help="The folder of the file."),
    click.option("--result-filename", metavar="NAME", help="The file's name, if not after load, model and time."),
)  # fmt: skip


def load_options(command: Decorated) -> Decorated:
    """Give a command all of them."""
    for option in reversed((*WHERE, *LOAD, *DATA, *RESULT)):
        command = option(command)
    return command
