from __future__ import annotations

import json

import pytest

from llmd.api.errors import UnsupportedModelError
from llmd.registry.selection import INDEX_FILE, SINGLE_FILE, small_files, weight_files, weight_index

NEEDED = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "merges.txt",
    "chat_template.jinja",
    "additional_chat_templates/tools.jinja",
    "1_Pooling/config.json",
    "1_LogitScore/config.json",
    "LICENSE.txt",
]
NOT_NEEDED = [
    "README.md",
    "pytorch_model.bin",
    "original/consolidated.00.pth",
    "consolidated.safetensors",
    "modeling_x.py",
    "onnx/model.onnx",
    "onnx/config.json",
    "additional_chat_templates/deep/er.jinja",
    "model.gguf",
    "flax_model.msgpack",
    SINGLE_FILE,
]


def test_only_what_a_model_needs_is_fetched() -> None:
    assert small_files([*NOT_NEEDED, *NEEDED]) == NEEDED


def test_a_single_file_wins_over_an_index() -> None:
    assert weight_index([SINGLE_FILE, INDEX_FILE]) is None
    assert weight_files(None) == [SINGLE_FILE]


def test_an_index_says_which_weights_there_are() -> None:
    assert weight_index([INDEX_FILE, "a.safetensors"]) == INDEX_FILE
    index = {"weight_map": {"x": "b.safetensors", "y": "a.safetensors", "z": "a.safetensors"}}
    assert weight_files(json.dumps(index).encode()) == ["a.safetensors", "b.safetensors"]


@pytest.mark.parametrize(
    "index",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"weight_map": {}}',
        b'{"weight_map": {"x": "../a.safetensors"}}',
        b'{"weight_map": {"x": "a.bin"}}',
        b'{"weight_map": {"x": 3}}',
        b'{"weight_map": {"x": []}}',
    ],
)
def test_an_index_that_leads_nowhere_is_refused(index: bytes) -> None:
    with pytest.raises(UnsupportedModelError, match="names no safetensors files"):
        weight_files(index)


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["pytorch_model.bin", "config.json"], "only pytorch_model.bin"),
        (["m.gguf"], "only m.gguf"),
        ([], "no weights at all"),
    ],
)
def test_weights_that_are_not_loaded_are_named(paths: list[str], found: str) -> None:
    with pytest.raises(UnsupportedModelError, match=found):
        weight_index(paths)
