"""An engine in the caller's process accepts and refuses the same values as a request."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from llmd.api.errors import RequestError
from llmd.api.messages import BeamParams, Grammar
from llmd.embedded.engine import Engine
from llmd.embedded.generated import GenerationOptions
from llmd.embedded.options import check_names, plain, read_options
from llmd.requests.ending import EndChoice, read_end
from llmd.requests.fields import RequestFields
from llmd.requests.sampling import SamplingChoice, read_sampling

QUESTION = "hello"
SAMPLERS: dict[str, Any] = {
    "seed": 5,
    "temperature": 0.7,
    "top_k": 30,
    "top_p": 0.9,
    "min_p": 0.01,
    "typical_p": 0.8,
    "top_n_sigma": 2.0,
    "dynatemp_range": 0.3,
    "dynatemp_exponent": 1.5,
    "xtc_probability": 0.5,
    "xtc_threshold": 0.05,
    "mirostat": 2,
    "mirostat_tau": 4.0,
    "mirostat_eta": 0.2,
    "samplers": ["penalties", "dry", "top_p", "temperature"],
    "repetition_penalty": 1.1,
    "repeat_penalty": 1.2,
    "frequency_penalty": 0.3,
    "presence_penalty": -0.4,
    "repeat_last_n": 64,
    "dry_multiplier": 0.8,
    "dry_base": 1.6,
    "dry_allowed_length": 3,
    "dry_penalty_last_n": 99,
    "dry_sequence_breakers": ["\n"],
    "logit_bias": {"65": 2.5},
    "bad_words": ["no"],
    "allowed_token_ids": [65, 66, 67],
}
ENDS: dict[str, Any] = {
    "min_tokens": 2,
    "stop": ["x", "yz"],
    "stop_token_ids": [66],
    "ignore_eos": True,
    "include_stop_str_in_output": True,
}
OWN = {"system", "adapter", "beam_width"}
BINDING = {"grammar", "json_schema", "response_format", "structured_outputs"}


def read(**options: Any) -> Any:
    return read_options(options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_is_that_of_a_request(name: str) -> None:
    needed = {"dry_multiplier": 1.0, "dynatemp_range": 0.1, "xtc_probability": 0.1, "mirostat": 1}
    body = {key: value for key, value in needed.items() if name.startswith(key.split("_")[0])} | {
        name: SAMPLERS[name]
    }
    expected = read_sampling(RequestFields(body), 0)
    assert read(**body).sampling == expected != SamplingChoice(logprobs=0)


def test_all_options_together_are_those_of_a_request_and_there_are_no_others() -> None:
    wanted = read(**SAMPLERS, **ENDS, max_tokens=7)
    assert wanted.sampling == read_sampling(RequestFields(SAMPLERS), 0)
    assert wanted.end == read_end(RequestFields(ENDS), 7)
    others = {"max_tokens", "length_penalty", "early_stopping"} | OWN | BINDING
    assert set(GenerationOptions.__annotations__) == {*SAMPLERS, *ENDS} | others


def test_nothing_given_leaves_everything_to_the_model() -> None:
    unset = dict.fromkeys(GenerationOptions.__annotations__)
    for options in ({}, unset):
        wanted = read(**options)
        assert (wanted.sampling, wanted.end) == (SamplingChoice(logprobs=0), EndChoice())
        assert (wanted.grammar, wanted.beams) == (None, None)


def test_values_may_be_numpys_and_names_of_biases_integers() -> None:
    numpys = {
        "temperature": np.float32(0.5),
        "top_k": np.int64(4),
        "allowed_token_ids": np.array([1, 2]),
        "stop_token_ids": (3, np.int32(4)),
        "logit_bias": {65: np.float64(1.0), np.int64(66): -1},
    }
    wanted = read(**numpys)
    assert (wanted.sampling.temperature, wanted.sampling.top_k) == (0.5, 4)
    assert wanted.sampling.allowed_ids == (1, 2)
    assert wanted.sampling.logit_bias == ((65, 1.0), (66, -1.0))
    assert wanted.end.token_ids == (3, 4)
    assert all(type(one) is int for one in (*wanted.sampling.allowed_ids, *wanted.end.token_ids))
    assert plain({1: (np.bool_(True), None)}) == {"1": [True, None]}


@pytest.mark.parametrize(
    ("options", "param", "message"),
    [
        ({"temperature": 2.5}, "temperature", "between 0.0 and 2.0"),
        ({"top_p": 0}, "top_p", "above 0"),
        ({"mirostat": 3}, "mirostat", "between 0 and 2"),
        ({"typical_p": "most"}, "typical_p", "a number"),
        ({"dry_sequence_breakers": [""]}, "dry_sequence_breakers", "texts of 1 to 40"),
        ({"samplers": ["heat"]}, "samplers", "a list of"),
        ({"logit_bias": {"A": 1}}, "logit_bias", "by token id"),
        ({"logit_bias": {65: 101}}, "logit_bias.65", "between -100.0 and 100.0"),
        ({"allowed_token_ids": "A"}, "allowed_token_ids", "a list of token ids"),
        ({"max_tokens": 0}, "max_tokens", "between 1 and"),
        ({"response_format": {"type": "poem"}}, "response_format", "json_schema"),
        ({"grammar": "x", "json_schema": {}}, "grammar", "both constrain"),
        ({"grammar": Grammar("json_object"), "json_schema": {}}, "grammar", "both constrain"),
        ({"structured_outputs": {"choices": ["a"]}}, "structured_outputs.choices", "there is no option"),
        ({"beam_width": 17}, "beam_width", "between 1 and 16"),
        ({"early_stopping": True}, "beam_width", "need beam_width"),
    ],
)
def test_what_a_request_would_be_refused_for_is_refused_by_name(
    options: dict[str, Any], param: str, message: str
) -> None:
    with pytest.raises(RequestError, match=re.escape(message)) as caught:
        read(**options)
    assert caught.value.param == param


def test_a_name_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RequestError, match="there is no option top_a"):
        check_names({"top_a": 1.0})  # type: ignore[typeddict-unknown-key]


def test_beams_are_as_many_as_asked_for() -> None:
    assert read(beam_width=3).beams == BeamParams(3, 1)
    assert read(beam_width=2, length_penalty=2, early_stopping="never").beams == BeamParams(
        2, 1, 2.0, "never"
    )


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"grammar": Grammar("regex", "[ab]{3}")}, "[ab]{3}"),
        ({"grammar": 'root ::= "x" [0-9]{2}'}, "x[0-9]{2}"),
        ({"grammar": 'start: "x" /[0-9]{2}/'}, "x[0-9]{2}"),
        ({"structured_outputs": {"regex": "q[rs]{2}"}}, "q[rs]{2}"),
        ({"structured_outputs": {"choice": ("yes", "no")}}, "yes|no"),
        ({"json_schema": {"enum": [12, 34]}}, "12|34"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"const": 7}}}}, "7"),
    ],
    ids=str,
)
def test_every_kind_of_grammar_binds_the_answer(
    engine: Engine, options: dict[str, Any], pattern: str
) -> None:
    answer = engine.generate(QUESTION, temperature=1.5, seed=1, **options)
    assert re.fullmatch(pattern, answer.text)
    assert answer.finish == "stop"


def test_a_schema_binds_the_answer(engine: Engine) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
    answer = engine.generate(QUESTION, json_schema=schema | {"additionalProperties": False}, temperature=0)
    assert json.loads(answer.text)["a"] in (1, 2)


@pytest.mark.parametrize(
    "fields",
    [
        {"typical_p": 1e-6},
        {"top_n_sigma": 1e-6},
        {"mirostat": 2, "mirostat_tau": 0},
        {"temperature": 0.1, "dynatemp_range": 0.1, "dynatemp_exponent": 50},
        {"logit_bias": {65: 100}},
        {"allowed_token_ids": [65]},
    ],
    ids=str,
)
def test_each_sampler_can_leave_one_token(engine: Engine, fields: dict[str, Any]) -> None:
    wanted = {"max_tokens": 8, "ignore_eos": True} | fields
    first, second = (engine.generate(QUESTION, seed=seed, **wanted).token_ids for seed in (1, 2))
    assert first == second
    assert len(first) == 8


def test_edits_and_ends_act(engine: Engine) -> None:
    forced: dict[str, Any] = {"temperature": 0, "max_tokens": 6, "logit_bias": {65: 50.0, 66: 49.0}}
    assert engine.generate(QUESTION, bad_words=["AA"], **forced).text == "ABABAB"
    assert engine.generate(QUESTION, dry_multiplier=5, dry_allowed_length=1, **forced).text != "AAAAAA"
    assert set(engine.generate(QUESTION, frequency_penalty=2, **forced).text) == {*"AB"}
    ended = engine.generate(QUESTION, stop_token_ids=[65], min_tokens=3, **forced)
    assert (ended.output_tokens, ended.finish) == (4, "stop")
    shown = engine.generate(QUESTION, stop="AA", include_stop_str_in_output=True, **forced)
    assert (shown.text, shown.finish) == ("AA", "stop")


def test_an_id_outside_the_vocabulary_is_refused(engine: Engine) -> None:
    with pytest.raises(RequestError, match="allowed_token_ids names ids"):
        engine.generate(QUESTION, allowed_token_ids=[1 << 20])
    assert engine.stats().running == 0
