from __future__ import annotations

from typing import Any

import pytest

from llmd.api.messages import Grammar
from llmd.chat.generation_defaults import GenerationDefaults
from llmd.chat.model_text import ModelText
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.llamacpp.fields import (
    MAX_PROMPTS,
    NEVER,
    read_bias,
    read_grammar,
    read_prompts,
    read_settings,
)


def test_prompts_come_in_every_form_of_mixed_texts() -> None:
    given = ["a", [1, "b"], {"prompt_string": "c"}]
    assert read_prompts(RequestFields({"prompt": given})) == ("a", (1, "b"), "c")


@pytest.mark.parametrize("prompt", [None, 5, ["a"] * (MAX_PROMPTS + 1)])
def test_what_is_no_prompt_is_refused(prompt: Any) -> None:
    with pytest.raises(BadRequestError, match="prompt must be"):
        read_prompts(RequestFields({"prompt": prompt}))


def test_bias_names_tokens_or_texts(text: ModelText) -> None:
    bias = read_bias(RequestFields({"logit_bias": [[5, 1.5], ["ab", -1], [6, False]]}))
    assert bias == ((5, 1.5), ("ab", -1.0), (6, NEVER))
    assert read_bias(RequestFields({"logit_bias": {"5": 2}})) == ((5, 2.0),)
    settings = read_settings(RequestFields({"logit_bias": [["ab", -1]]}))
    choice = settings.choice(text.tokenizer, GenerationDefaults())
    assert choice.logit_bias == ((97, -1.0), (98, -1.0))


@pytest.mark.parametrize("bias", [5, [[1]], [[1, True]], [[1, "a"]], [[1, 5000]], [[None, 1]]])
def test_what_is_no_bias_is_refused(bias: Any) -> None:
    with pytest.raises(BadRequestError, match="logit_bias"):
        read_bias(RequestFields({"logit_bias": bias}))


def test_grammar_is_a_schema_or_gbnf() -> None:
    assert read_grammar(RequestFields({})) is None
    assert read_grammar(RequestFields({"grammar": 'root ::= "a"'})) == Grammar("gbnf", 'root ::= "a"')
    assert read_grammar(RequestFields({"json_schema": {"properties": {}}})) == Grammar(
        "json_schema", '{"properties": {}, "additionalProperties": false}'
    )
    with pytest.raises(BadRequestError, match="mutually exclusive"):
        read_grammar(RequestFields({"grammar": "a", "json_schema": {"type": "null"}}))


def test_makers_of_the_model_come_before_llama_servers_defaults(text: ModelText) -> None:
    settings = read_settings(RequestFields({"top_k": 3, "seed": -1, "temperature": -1}))
    choice = settings.choice(text.tokenizer, GenerationDefaults(top_p=0.5))
    assert (choice.top_k, choice.top_p, choice.min_p) == (3, None, 0.05)
    assert (choice.seed, choice.temperature) == (None, 0.0)


def test_samplers_have_llama_cpps_names() -> None:
    settings = read_settings(RequestFields({"mirostat": 2, "repeat_last_n": -1, "n_predict": -1, "top_p": 0}))
    assert settings.sampling.mirostat is not None
    assert settings.sampling.repeat_last_n is not None
    assert settings.end.max_tokens is None
    assert settings.sampling.top_k == 1


def test_probabilities_after_sampling_are_asked_of_the_engine(text: ModelText) -> None:
    for post_sampling in (True, False):
        settings = read_settings(RequestFields({"n_probs": 3, "post_sampling_probs": post_sampling}))
        choice = settings.choice(text.tokenizer, GenerationDefaults())
        assert (choice.logprobs, choice.post_sampling) == (3, post_sampling)


@pytest.mark.parametrize("wanted", [5, [1], {"content": True}])
def test_response_fields_are_a_list_of_names(wanted: Any) -> None:
    with pytest.raises(BadRequestError, match="response_fields"):
        read_settings(RequestFields({"response_fields": wanted}))
