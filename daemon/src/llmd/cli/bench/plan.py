"""Turns the options of ``llmd bench serve`` into a measurement plan and report options."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import click

from llmd.api.errors import ConfigError
from llmd.benchmark.arrivals import RampUp, Traffic
from llmd.benchmark.data_set import DataSet, RandomData, ShareGptData
from llmd.benchmark.measurement import Plan
from llmd.benchmark.random_prompts import RandomShape
from llmd.benchmark.report import ReportOptions
from llmd.benchmark.target import CHAT, COMPLETIONS
from llmd.cli.bench.options import SAMPLING
from llmd.config.schema import ClientConfig

DEFAULT_OUTPUT_LEN = 128


def read_plan(options: Mapping[str, Any], config: ClientConfig) -> Plan:
    """Return what to measure. ``model`` is None for a temporary daemon, which serves only one.

    API key, certificates and timeout come from the client settings, as for every command.

    Raises:
        click.UsageError: the options contradict each other.
    """
    backend = CHAT if options["backend"] == CHAT else COMPLETIONS
    key = {"Authorization": f"Bearer {config.api_key}"} if config.api_key else {}
    return Plan(
        backend=backend,
        path=options["endpoint"],
        model=options["model"] if options["base_url"] else None,
        tokenizer=options["tokenizer"],
        headers=key | options["headers"],
        fields=read_fields(options),
        data=read_data(options, backend),
        traffic=read_traffic(options),
        num_prompts=options["num_prompts"],
        num_warmups=options["num_warmups"],
        seed=options["seed"],
        label=options["label"],
        silence_s=config.timeout_s,
        ca_file=config.ca_file,
    )


def read_traffic(options: Mapping[str, Any]) -> Traffic:
    """Return when requests are sent."""
    ramp = [options[f"ramp_up_{name}"] for name in ("strategy", "start_rps", "end_rps")]
    given = [value is not None for value in ramp]
    if any(given) and not (all(given) and math.isinf(options["request_rate"])):
        raise click.UsageError(
            "a ramp-up needs --ramp-up-strategy, --ramp-up-start-rps and --ramp-up-end-rps,"
            " and cannot be combined with --request-rate"
        )
    if any(math.isinf(rate) for rate in ramp[1:] if rate is not None):
        raise click.UsageError("--ramp-up-start-rps and --ramp-up-end-rps must be finite")
    ramp_up = RampUp(*ramp) if all(given) else None
    return Traffic(options["request_rate"], options["burstiness"], options["max_concurrency"], ramp_up)


def read_chosen(options: Mapping[str, Any]) -> ReportOptions:
    """Return what to report."""
    return ReportOptions(options["metrics"], options["percentiles"], options["goals_ms"])


def read_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that every request has."""
    sampling = {name: options[name] for name in SAMPLING if options[name] is not None}
    ignores = options["ignore_eos"] or options["dataset_name"] == "random"
    return sampling | ({"ignore_eos": True} if ignores else {}) | read_extra(options["extra_body"])


def read_extra(text: str | None) -> dict[str, Any]:
    """Parse ``--extra-body``.

    Raises:
        ConfigError: it is not a JSON object.
    """
    if text is None:
        return {}
    try:
        extra = json.loads(text)
    except ValueError:
        extra = None
    if not isinstance(extra, dict):
        raise ConfigError(
            f"--extra-body is {text!r}, which is not a JSON object", hint="quote it for the shell"
        )
    return extra


def read_data(options: Mapping[str, Any], backend: str) -> DataSet:
    """Return the data set with its options."""
    path, output_len, as_token_ids = options["dataset_path"], options["output_len"], options["token_ids"]
    if options["dataset_name"] == "sharegpt":
        if path is None or as_token_ids:
            raise click.UsageError(
                "--dataset-name sharegpt needs --dataset-path and cannot be combined with --token-ids"
            )
        return ShareGptData(path, output_len)
    if path is not None:
        raise click.UsageError("--dataset-path needs --dataset-name sharegpt")
    if as_token_ids and backend == CHAT:
        raise click.UsageError("--token-ids needs --backend openai: chat messages are text")
    shape = RandomShape(
        options["input_len"], output_len or DEFAULT_OUTPUT_LEN, options["range_ratio"], options["prefix_len"]
    )
    return RandomData(shape, as_token_ids)
