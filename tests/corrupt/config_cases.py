"""Damaged configurations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llmd.api import CheckpointError, LlmdError, UnsupportedModelError
from tests.corrupt.case import Case
from tests.corrupt.small_model import CONFIG

CONFIG_FILE = "config.json"


def file_case(name: str, change: Callable[[bytes], bytes], *mentions: str) -> Case:
    """A change of the file's bytes."""

    def damage(directory: Path) -> None:
        path = directory / CONFIG_FILE
        path.write_bytes(change(path.read_bytes()))

    return Case(f"config {name}", damage, CheckpointError, (CONFIG_FILE, *mentions))


def field_case(
    name: str, changes: dict[str, Any], *mentions: str, error: type[LlmdError] = CheckpointError
) -> Case:
    """Other values of fields; those that become None are absent."""
    changed = {field: value for field, value in {**CONFIG, **changes}.items() if value is not None}

    def damage(directory: Path) -> None:
        (directory / CONFIG_FILE).write_text(json.dumps(changed))

    return Case(f"config {name}", damage, error, mentions)


def without(field: str, *mentions: str) -> Case:
    return field_case(f"without {field}", {field: None}, *(mentions or (CONFIG_FILE, field)))


FILE_CASES = (
    Case(
        "config absent", lambda directory: (directory / CONFIG_FILE).unlink(), CheckpointError, (CONFIG_FILE,)
    ),
    file_case("empty", lambda _: b"", "not valid JSON"),
    file_case("cut", lambda text: text[:-9], "not valid JSON"),
    file_case("html page", lambda _: b"<!DOCTYPE html><html>", "not valid JSON"),
    file_case("a list", lambda text: b"[" + text + b"]", "not an object"),
    file_case("with byte order mark", lambda text: b"\xef\xbb\xbf" + text, "byte order mark"),
    file_case("in utf-16", lambda text: text.decode().encode("utf-16"), "not valid JSON"),
    file_case("with a key twice", lambda text: b'{"hidden_size": 8, ' + text[1:], "hidden_size", "twice"),
    file_case("with NaN", lambda text: text.replace(b"1e-05", b"NaN"), "NaN"),
    file_case("with infinity", lambda text: text.replace(b"10000.0", b"1e999"), "too large"),
    file_case("with endless digits", lambda text: text.replace(b"10000.0", b"1" * 5000), "not valid JSON"),
    file_case("nested deeply", lambda _: b'{"a":' * 200_000, "not valid JSON"),
    file_case("too large", lambda text: text + b" " * 17_000_000, "larger than"),
)

FIELD_CASES = (
    field_case(
        "with a truth value for its architectures", {"architectures": True}, CONFIG_FILE, "architectures"
    ),
    field_case("with architectures of numbers", {"architectures": [1]}, CONFIG_FILE, "architectures[0]"),
    field_case("with a text for quantisation", {"quantization_config": "gptq"}, "quantization_config"),
    field_case("with eos below 0", {"eos_token_id": -1}, CONFIG_FILE, "eos_token_id"),
    field_case("without a name", {"architectures": None, "model_type": None}, CONFIG_FILE, "names neither"),
    field_case(
        "of an unknown architecture",
        {"architectures": ["LlamaForCausalLMX"]},
        "LlamaForCausalLMX",
        "LlamaForCausalLM",
        "plugins list",
        error=UnsupportedModelError,
    ),
    field_case(
        "of a classifier",
        {"architectures": ["LlamaForSequenceClassification"]},
        "LlamaForSequenceClassification",
        error=UnsupportedModelError,
    ),
    field_case(
        "of quantised weights",
        {"quantization_config": {"quant_method": "gptq"}},
        CONFIG_FILE,
        "gptq",
        error=UnsupportedModelError,
    ),
    field_case("with unknown activation", {"hidden_act": "mish"}, "mish", error=UnsupportedModelError),
    field_case(
        "with unknown rope",
        {"rope_scaling": {"rope_type": "spiral", "factor": 2.0}},
        "spiral",
        error=UnsupportedModelError,
    ),
    field_case(
        "with a rope factor of text", {"rope_scaling": {"rope_type": "linear", "factor": "2"}}, "factor"
    ),
    field_case("with rope scaling of a list", {"rope_scaling": [2]}, "rope_scaling"),
    without("hidden_size"),
    without("num_hidden_layers"),
    without("num_attention_heads"),
    without("vocab_size"),
    without("intermediate_size"),
    field_case("with another width", {"hidden_size": 20}, "model.embed_tokens.weight", "has shape [260, 16]"),
    field_case("with another vocabulary", {"vocab_size": 300}, "model.embed_tokens.weight", "[300, 16]"),
    field_case("with other heads", {"num_key_value_heads": 4}, "model.layers.0.self_attn.k_proj.weight"),
    field_case("with more layers", {"num_hidden_layers": 3}, "model.layers.2.", "is missing"),
    field_case("with fewer layers", {"num_hidden_layers": 1}, "model.layers.1.", "answers would be wrong"),
    field_case("with biases", {"attention_bias": True}, "self_attn.q_proj.bias", "is missing"),
    field_case("with no layer", {"num_hidden_layers": 0}, CONFIG_FILE, "num_hidden_layers"),
    field_case("with absurd layers", {"num_hidden_layers": 10**12}, CONFIG_FILE, "num_hidden_layers"),
    field_case("with many layers", {"num_hidden_layers": 10**6}, "num_hidden_layers"),
    field_case("with absurd heads", {"head_dim": 10**9}, CONFIG_FILE, "head_dim"),
    field_case("with negative width", {"hidden_size": -16}, CONFIG_FILE, "hidden_size"),
    field_case("with width of text", {"hidden_size": "16"}, CONFIG_FILE, "hidden_size"),
    field_case("with width of a truth value", {"hidden_size": True}, CONFIG_FILE, "hidden_size"),
    field_case("with heads that do not divide", {"num_key_value_heads": 3}, "num_key_value_heads"),
    field_case("with an odd head", {"head_dim": 5}, "head_dim"),
    field_case("with eps of 0", {"rms_norm_eps": 0}, CONFIG_FILE, "rms_norm_eps"),
    field_case("with theta below 0", {"rope_theta": -1.0}, CONFIG_FILE, "rope_theta"),
    field_case("with tie of text", {"tie_word_embeddings": "false"}, CONFIG_FILE, "tie_word_embeddings"),
    field_case("with a context of 0", {"max_position_embeddings": 0}, CONFIG_FILE, "max_position_embeddings"),
)

CASES = FILE_CASES + FIELD_CASES
