from __future__ import annotations

from typing import Any

from llmd.chat.generation_defaults import GenerationDefaults
from llmd.chat.model_text import ModelText
from llmd.requests.fields import RequestFields
from llmd.server.dialects.llamacpp.fields import read_settings
from llmd.server.dialects.llamacpp.generation_settings import RANDOM_SEED, generation_settings

SILENT: dict[str, Any] = {
    "seed": RANDOM_SEED,
    "temperature": 0.8,
    "dynatemp_range": 0.0,
    "dynatemp_exponent": 1.0,
    "top_k": 40,
    "top_p": 0.95,
    "min_p": 0.05,
    "top_n_sigma": -1.0,
    "xtc_probability": 0.0,
    "xtc_threshold": 0.1,
    "typical_p": 1.0,
    "repeat_last_n": -1,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "dry_base": 1.75,
    "dry_allowed_length": 2,
    "dry_penalty_last_n": -1,
    "dry_sequence_breakers": ["\n", ":", '"', "*"],
    "mirostat": 0,
    "mirostat_tau": 5.0,
    "mirostat_eta": 0.1,
    "stop": [],
    "max_tokens": -1,
    "n_predict": -1,
    "n_keep": 0,
    "n_discard": 0,
    "ignore_eos": False,
    "stream": False,
    "logit_bias": [],
    "n_probs": 0,
    "min_keep": 0,
    "grammar": "",
    "chat_format": "Content-only",
    "reasoning_format": "none",
    "reasoning_in_content": False,
    "generation_prompt": "",
    "samplers": [
        "penalties",
        "dry",
        "top_n_sigma",
        "top_k",
        "typ_p",
        "top_p",
        "min_p",
        "xtc",
        "temperature",
    ],
    "speculative.n_max": 0,
    "speculative.n_min": 0,
    "speculative.p_min": 0.0,
    "timings_per_token": False,
    "post_sampling_probs": False,
    "lora": [],
}

SAID: dict[str, Any] = {
    "seed": 7,
    "temperature": 0.5,
    "dynatemp_range": 0.25,
    "dynatemp_exponent": 2.0,
    "top_k": 3,
    "top_p": 0.5,
    "min_p": 0.25,
    "top_n_sigma": 1.5,
    "xtc_probability": 0.5,
    "xtc_threshold": 0.25,
    "typical_p": 0.75,
    "repeat_last_n": 32,
    "repeat_penalty": 1.5,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.25,
    "dry_multiplier": 0.5,
    "dry_base": 2.0,
    "dry_allowed_length": 4,
    "dry_penalty_last_n": 16,
    "dry_sequence_breakers": ["."],
    "mirostat": 1,
    "mirostat_tau": 3.0,
    "mirostat_eta": 0.5,
    "stop": ["END"],
    "n_predict": 9,
    "ignore_eos": True,
    "stream": True,
    "n_probs": 4,
    "grammar": 'root ::= "a"',
    "samplers": ["penalties", "dry", "top_k", "temperature"],
    "post_sampling_probs": True,
}


def settings_of(text: ModelText, defaults: GenerationDefaults, **given: Any) -> dict[str, Any]:
    settings = read_settings(RequestFields(given))
    return generation_settings(settings, settings.choice(text.tokenizer, defaults), defaults)


def test_request_that_says_nothing_has_llama_servers_names_and_defaults(text: ModelText) -> None:
    assert settings_of(text, GenerationDefaults()) == SILENT


def test_makers_of_the_model_come_before_llama_servers_defaults(text: ModelText) -> None:
    makers = GenerationDefaults(temperature=0.25, top_k=5, repetition_penalty=1.25)
    changed = {"temperature": 0.25, "top_k": 5, "repeat_penalty": 1.25}
    assert settings_of(text, makers) == SILENT | changed


def test_everything_that_a_request_says_is_told(text: ModelText) -> None:
    assert settings_of(text, GenerationDefaults(), **SAID) == SILENT | SAID | {"max_tokens": 9}


def test_texts_of_a_bias_are_told_as_tokens(text: ModelText) -> None:
    told = settings_of(text, GenerationDefaults(), logit_bias=[["ab", -1], [5, 2]])
    assert told["logit_bias"] == [
        {"bias": -1.0, "token": 97},
        {"bias": -1.0, "token": 98},
        {"bias": 2.0, "token": 5},
    ]


def test_schema_stands_beside_the_grammar(text: ModelText) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "null"}}}
    told = settings_of(text, GenerationDefaults(), json_schema=schema)
    assert told["grammar"] == ""
    assert set(told) == {*SILENT, "json_schema"}
    assert told["json_schema"]["properties"] == schema["properties"]
