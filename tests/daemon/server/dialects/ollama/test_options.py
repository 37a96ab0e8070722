from __future__ import annotations

from typing import Any

import pytest

from llmd.api.samplers import OLLAMA_ORDER
from llmd.chat.generation_defaults import GenerationDefaults
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.requests.named_tokens import ALL_TOKENS
from llmd.requests.sampling import SamplingChoice
from llmd.server.dialects.ollama.options import Options, read_options, with_fallbacks


def read(**options: Any) -> Options:
    return read_options(RequestFields(options, "options."), None)


def test_options_have_their_meaning() -> None:
    options = read(num_ctx=100, num_predict=5, stop="a", temperature=0.5, repeat_penalty=1.1, num_keep=4)
    assert (options.window, options.end.max_tokens, options.end.strings) == (100, 5, ("a",))
    assert (options.sampling.temperature, options.sampling.repetition_penalty) == (0.5, 1.1)
    assert options.num_keep == 4


@pytest.mark.parametrize("num_predict", [-2, -1, 0, None])
def test_no_limit_is_the_end_of_the_window(num_predict: int | None) -> None:
    assert read(num_predict=num_predict).end.max_tokens is None


def test_seed_of_minus_one_is_random_and_the_smallest_nucleus_is_one_token() -> None:
    assert read(seed=-1).sampling.seed is None
    assert read(seed=0).sampling.seed == 0
    assert (read(top_p=0).sampling.top_k, read(top_p=0).sampling.top_p) == (1, 1.0)
    assert read(top_k=-1).sampling.top_k == 0


@pytest.mark.parametrize(
    "option", [{"mirostat": 3}, {"typical_p": 2}, {"repeat_penalty": 0}, {"num_ctx": 0}, {"top_p": 1.5}]
)
def test_what_cannot_be_done_is_refused_by_name(option: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError) as caught:
        read(**option)
    assert caught.value.param == f"options.{next(iter(option))}"


def test_options_of_loading_are_left_unread() -> None:
    fields = RequestFields({"num_gpu": 1, "num_ctx": 8}, "options.")
    read_options(fields, None)
    assert fields.ignored == ("options.num_gpu",)


def test_makers_of_the_model_come_before_ollamas_defaults_and_the_request_before_both() -> None:
    choice = with_fallbacks(SamplingChoice(top_p=0.5), GenerationDefaults(temperature=0.6))
    assert (choice.temperature, choice.top_k, choice.top_p) == (None, 40, 0.5)
    choice = with_fallbacks(SamplingChoice(), GenerationDefaults())
    assert (choice.temperature, choice.top_k, choice.top_p) == (0.8, 40, 0.9)


def test_tokens_can_be_biased_forbidden_and_allowed_as_elsewhere() -> None:
    sampling = read(logit_bias={"65": 2}, bad_words=["no"], allowed_token_ids=[65, 66]).sampling
    assert (sampling.logit_bias, sampling.bad_words) == (((65, 2.0),), ("no",))
    assert sampling.allowed_ids == (65, 66)


def test_samplers_run_in_the_order_of_ollama_unless_the_request_has_another() -> None:
    assert read().sampling.params(GenerationDefaults(), 0, 0).order == OLLAMA_ORDER
    assert read(samplers=["min_p", "top_k"]).sampling.params(GenerationDefaults(), 0, 0).order == (
        "min_p",
        "top_k",
    )


def test_samplers_are_those_of_llama_cpp() -> None:
    sampling = read(mirostat=2, mirostat_tau=4.0, typical_p=0.9, repeat_last_n=-1).sampling
    assert sampling.mirostat is not None
    assert (sampling.mirostat.tau, sampling.typical_p) == (4.0, 0.9)
    assert sampling.repeat_last_n == ALL_TOKENS


def test_penalties_of_a_request_look_at_the_last_tokens_alone() -> None:
    assert with_fallbacks(SamplingChoice(), GenerationDefaults()).repeat_last_n is None
    for asked in (
        SamplingChoice(repetition_penalty=1.1),
        SamplingChoice(frequency_penalty=0.5),
        SamplingChoice(presence_penalty=0.5),
    ):
        assert with_fallbacks(asked, GenerationDefaults()).repeat_last_n == 64
    asked = SamplingChoice(repetition_penalty=1.1, repeat_last_n=0)
    assert with_fallbacks(asked, GenerationDefaults()).repeat_last_n == 0
