"""Options become a plan; contradicting options are refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
import pytest

from llmd.api.errors import ConfigError
from llmd.benchmark.arrivals import RampUp, Traffic
from llmd.benchmark.data_set import RandomData, ShareGptData
from llmd.benchmark.measurement import Plan
from llmd.benchmark.random_prompts import RandomShape
from llmd.cli.bench.options import load_options
from llmd.cli.bench.plan import read_chosen, read_plan
from llmd.config.schema import ClientConfig

RAMP = ("--ramp-up-strategy", "linear", "--ramp-up-start-rps", "1", "--ramp-up-end-rps")


def options_of(*arguments: str) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    @click.command()
    @load_options
    def command(**options: Any) -> None:
        seen.update(options)

    command.main(list(arguments), standalone_mode=False)
    return seen


def plan(*arguments: str) -> Plan:
    return read_plan(options_of(*arguments), ClientConfig(timeout_s=60.0, ca_file="x.pem"))


def test_every_option_reaches_its_part() -> None:
    made = plan(
        *("--base-url", "http://h:1", "--model", "m", "--tokenizer", "t", "--endpoint", "/x"),
        *("--header", "K=V", "--num-prompts", "5", "--num-warmups", "2", "--seed", "7", "--label", "l"),
        *("--request-rate", "3", "--burstiness", "0.5", "--max-concurrency", "4"),
        *("--input-len", "9", "--output-len", "8", "--random-range-ratio", "0.5", "--random-prefix-len", "3"),
        *("--token-ids", "--temperature", "0.5", "--top-p", "0.9", "--top-k", "5", "--min-p", "0.1"),
        *("--extra-body", '{"logprobs": 1}'),
    )
    assert made == Plan(
        backend="openai",
        path="/x",
        model="m",
        tokenizer="t",
        headers={"K": "V"},
        fields={
            "temperature": 0.5, "top_p": 0.9, "top_k": 5, "min_p": 0.1, "ignore_eos": True, "logprobs": 1
        },
        data=RandomData(RandomShape(9, 8, 0.5, 3), as_token_ids=True),
        traffic=Traffic(3.0, 0.5, 4),
        num_prompts=5,
        num_warmups=2,
        seed=7,
        label="l",
        silence_s=60.0,
        ca_file="x.pem",
    )  # fmt: skip


def test_a_file_of_conversations_has_its_own_lengths_and_ends() -> None:
    made = plan("--dataset-name", "sharegpt", "--dataset-path", "x.json")
    assert (made.data, made.fields) == (ShareGptData(Path("x.json")), {})
    made = plan("--dataset-name", "sharegpt", "--dataset-path", "x.json", "--output-len", "9", "--ignore-eos")
    assert (made.data, made.fields) == (ShareGptData(Path("x.json"), 9), {"ignore_eos": True})


def test_vllm_as_a_backend_means_completions() -> None:
    assert plan("--backend", "vllm").backend == "openai"
    assert plan("--backend", "openai-chat").backend == "openai-chat"


def test_the_model_of_a_daemon_that_is_started_is_asked_of_it() -> None:
    assert plan("--model", "/some/where").model is None


def test_the_key_of_the_settings_is_sent_unless_a_header_says_otherwise() -> None:
    config = ClientConfig(api_key="k")
    assert read_plan(options_of(), config).headers == {"Authorization": "Bearer k"}
    given = options_of("--header", "Authorization=Bearer other")
    assert read_plan(given, config).headers == {"Authorization": "Bearer other"}
    assert plan().headers == {}


def test_a_rate_may_change_over_the_load() -> None:
    assert plan(*RAMP, "8", "--burstiness", "2").traffic == Traffic(
        math.inf, 2.0, None, RampUp("linear", 1.0, 8.0)
    )


def test_what_is_reported_is_chosen() -> None:
    chosen = read_chosen(
        options_of("--percentile-metrics", "itl", "--metric-percentiles", "50", "--goodput", "ttft:9")
    )
    assert (chosen.metrics, chosen.percentiles, chosen.goals_ms) == (("itl",), (50.0,), {"ttft": 9.0})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--dataset-name", "sharegpt"), "--dataset-path"),
        (("--dataset-path", "x"), "sharegpt"),
        (
            ("--dataset-name", "sharegpt", "--dataset-path", "x", "--token-ids"),
            "cannot be combined with --token-ids",
        ),
        (("--ramp-up-strategy", "linear", "--ramp-up-start-rps", "1"), "--ramp-up-end-rps"),
        ((*RAMP, "2", "--request-rate", "3"), "with --request-rate"),
        ((*RAMP, "inf"), "finite"),
        (("--token-ids", "--backend", "openai-chat"), "--backend openai"),
    ],
)
def test_options_that_contradict_each_other_are_refused(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        plan(*arguments)
    assert said in caught.value.message


@pytest.mark.parametrize("text", ["[1]", "x"])
def test_extra_fields_are_a_json_object(text: str) -> None:
    with pytest.raises(ConfigError, match="--extra-body"):
        plan("--extra-body", text)
