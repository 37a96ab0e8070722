"""The options of ``llmd bench serve``, with the names, meanings and defaults of ``vllm bench serve``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from llmd.cli.completion.names import model_names
from llmd.cli.generation_options import number

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

METRICS = ("ttft", "tpot", "itl", "e2el", "client_queue_time", "e2el_including_client_queue")
GOALS = ("ttft", "tpot", "e2el")
SAMPLING = ("temperature", "top_p", "top_k", "min_p")
"""Sent with each request if they were typed. The server checks the ranges."""


class SeveralValues(click.Command):
    """A command whose repeatable options also accept several values in a row, like vLLM's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        repeatable = {
            name
            for parameter in self.params
            if isinstance(parameter, click.Option) and parameter.multiple
            for name in parameter.opts
        }
        return super().parse_args(ctx, list(_each_named(args, repeatable)))


def _each_named(words: Iterable[str], repeatable: set[str]) -> Iterable[str]:
    """Rewrite ``--goodput a b`` as ``--goodput a --goodput b``."""
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
        ValueError: the text is not such a number.
    """
    value = float(text)
    if not value > 0:
        raise ValueError(text)
    return value


def pair(separator: str) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str]]:
    """Return a click callback that reads repeated ``KEY=VALUE``, with ``separator`` for ``=``."""

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
    """Read goals in milliseconds by metric (a click callback)."""
    goals = {}
    for name, text in pair(":")(ctx, parameter, texts).items():
        try:
            goals[name] = number(text)
        except ValueError:
            goals[name] = math.nan
        if name not in GOALS or not goals[name] >= 0:
            raise click.BadParameter(
                f"{name}:{text} must be one of {', '.join(f'{goal}:MS' for goal in GOALS)}"
            )
    return goals


def read_metrics(_ctx: click.Context, _parameter: click.Parameter, text: str) -> tuple[str, ...]:
    """Read names of metrics, separated by commas (a click callback)."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if unknown := [name for name in names if name not in METRICS]:
        raise click.BadParameter(f"there is no metric {unknown[0]!r}; the metrics are {', '.join(METRICS)}")
    return names


def read_percentiles(_ctx: click.Context, _parameter: click.Parameter, text: str) -> tuple[float, ...]:
    """Read numbers from 0 to 100, separated by commas (a click callback)."""
    try:
        percentiles = tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a list of numbers separated by commas") from error
    if not all(0 <= percentile <= 100 for percentile in percentiles):
        raise click.BadParameter("percentiles must be between 0 and 100")
    return percentiles


COUNT = click.IntRange(min=1)
WHERE = (
    click.option("--base-url", metavar="URL", help="The server: http://HOST:PORT or unix:PATH; by default a temporary daemon is started."),
    click.option("--model", metavar="NAME", shell_complete=model_names, help="The model to use; by default the server's first. Required for a temporary daemon."),
    click.option("--tokenizer", metavar="MODEL|DIRECTORY", shell_complete=model_names, help="Source of the tokenizer, if not the model itself."),
    click.option("--backend", "--endpoint-type", "backend", type=click.Choice(["openai", "openai-chat", "vllm"]), default="openai",
                 help="The API: completions or chat; vllm is the same as openai."),
    click.option("--endpoint", metavar="PATH", help="The route, if not the API's default."),
    click.option("--header", "headers", multiple=True, callback=pair("="), metavar="KEY=VALUE", help="Send this header with each request, such as an API key; repeatable."),
)  # fmt: skip
LOAD = (
    click.option("--num-prompts", type=COUNT, default=1000, help="Number of requests."),
    click.option("--num-warmups", type=click.IntRange(min=0), default=0, help="Number of warm-up requests, which are not counted."),
    click.option("--seed", type=click.IntRange(min=0), default=0, help="Random seed of prompts, lengths and arrival times."),
    click.option("--request-rate", type=positive_number, metavar="N", default=math.inf, help="Requests per second; inf: all at once."),
    click.option("--burstiness", type=positive_number, metavar="N", default=1.0, help="1: Poisson arrivals; below 1: bursts; above 1: more even arrivals."),
    click.option("--ramp-up-strategy", type=click.Choice(["linear", "exponential"]), help="How the request rate changes over the run."),
    click.option("--ramp-up-start-rps", type=positive_number, metavar="N", help="Requests per second at the start of the ramp-up."),
    click.option("--ramp-up-end-rps", type=positive_number, metavar="N", help="Requests per second at the end of the ramp-up."),
    click.option("--max-concurrency", type=COUNT, help="Maximum requests in flight; others wait in the client."),
    click.option("--ignore-eos", is_flag=True, help="Generate answers to their full length; always on for the random data set."),
    click.option("--temperature", type=number, metavar="T", help="Sampling temperature; by default the server's."),
    click.option("--top-p", type=number, metavar="P", help="Sample from the most likely tokens whose probabilities sum to P."),
    click.option("--top-k", type=int, metavar="K", help="Sample from the K most likely tokens."),
    click.option("--min-p", type=number, metavar="P", help="Drop tokens less likely than P times the most likely one."),
    click.option("--extra-body", metavar="JSON", help="Extra fields to send with each request."),
)  # fmt: skip
DATA = (
    click.option("--dataset-name", type=click.Choice(["random", "sharegpt"]), default="random", help="Source of the prompts."),
    click.option("--dataset-path", type=click.Path(path_type=Path), help="File of conversations for sharegpt."),
    click.option("--random-input-len", "--input-len", "input_len", type=click.IntRange(min=0), default=1024, help="Tokens per random prompt."),
    click.option("--random-output-len", "--sharegpt-output-len", "--output-len", "output_len", type=COUNT, help="Tokens per answer; by default 128, or the lengths in the file."),
    click.option("--random-range-ratio", "range_ratio", type=float, default=0.0, help="Vary random lengths by this share: at least 0, below 1."),
    click.option("--random-prefix-len", "prefix_len", type=click.IntRange(min=0), default=0, help="Tokens of a prefix shared by all random prompts."),
    click.option("--token-ids", is_flag=True, help="Send random prompts as token ids, with exact lengths; completions only."),
)  # fmt: skip
RESULT = (
    click.option("--percentile-metrics", "metrics", default="ttft,tpot,itl,e2el", callback=read_metrics, help="Metrics to report."),
    click.option("--metric-percentiles", "percentiles", default="99", callback=read_percentiles, help="Percentiles to report."),
    click.option("--goodput", "goals_ms", multiple=True, callback=read_goals, metavar="METRIC:MS", help="Latency limit of a good request: ttft, tpot or e2el; repeatable."),
    click.option("--label", help="Label of the result; by default the name of the API."),
    click.option("--metadata", multiple=True, callback=pair("="), metavar="KEY=VALUE", help="Add this to the result; repeatable."),
    click.option("--save-result", is_flag=True, help="Write the result to a file."),
    click.option("--save-detailed", is_flag=True, help="Also keep the times, text and error of each request."),
    click.option("--append-result", is_flag=True, help="Append the result to the file as one line."),
    click.option("--result-dir", type=click.Path(path_type=Path), help="Folder of the result file."),
    click.option("--result-filename", metavar="NAME", help="Name of the result file; by default made from load, model and time."),
)  # fmt: skip


def load_options(command: Decorated) -> Decorated:
    """Add all options to a command."""
    for option in reversed((*WHERE, *LOAD, *DATA, *RESULT)):
        command = option(command)
    return command
