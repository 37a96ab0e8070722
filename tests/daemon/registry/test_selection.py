from __future__ import annotations

import json

import pytest

from llmd.api.errors import UnsupportedModelError
from llmd.models.shards import INDEX_FILE, SINGLE_FILE
from llmd.registry.selection import has_weights, licences, small_files, weight_files, weight_index

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
    "params.json",
    "tekken.json",
    "flax_model.msgpack",
    SINGLE_FILE,
]


def test_only_what_a_model_needs_is_fetched() -> None:
    assert small_files([*NOT_NEEDED, *NEEDED]) == NEEDED


def test_a_single_file_wins_over_an_index() -> None:
    assert weight_index([SINGLE_FILE, INDEX_FILE]) is None
    assert weight_files([SINGLE_FILE, INDEX_FILE], None) == [SINGLE_FILE]


MISTRAL = ["config.json", "params.json", "tekken.json", "tokenizer.model.v7"]


def test_mistrals_files_are_fetched_where_there_are_no_others() -> None:
    assert small_files([*MISTRAL, "consolidated.safetensors"]) == MISTRAL
    assert small_files([*MISTRAL, INDEX_FILE]) == ["config.json", "tekken.json", "tokenizer.model.v7"]
    assert small_files([*MISTRAL, "tokenizer.json"]) == ["config.json", "params.json", "tokenizer.json"]


@pytest.mark.parametrize(
    "weights",
    [["consolidated.safetensors"], ["consolidated.00.safetensors", "consolidated.01.safetensors"]],
)
def test_weights_in_metas_layout_are_those_where_it_is_described(weights: list[str]) -> None:
    paths = [*weights, "params.json", "consolidated.00.pth"]
    assert weight_index(paths) is None
    assert weight_files(paths, None) == weights
    with pytest.raises(UnsupportedModelError, match="has neither"):
        weight_index(weights)
    assert weight_files([*paths, SINGLE_FILE], None) == [SINGLE_FILE]


def test_an_index_in_metas_layout_is_read() -> None:
    index = "consolidated.safetensors.index.json"
    assert weight_index([index, "params.json"]) == index
    assert weight_index([index, "params.json", INDEX_FILE]) == INDEX_FILE


def test_an_index_says_which_weights_there_are() -> None:
    assert weight_index([INDEX_FILE, "a.safetensors"]) == INDEX_FILE
    index = {"weight_map": {"x": "b.safetensors", "y": "a.safetensors", "z": "a.safetensors"}}
    assert weight_files([], json.dumps(index).encode()) == ["a.safetensors", "b.safetensors"]


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
    with pytest.raises(UnsupportedModelError, match="lists no safetensors files"):
        weight_files([], index)


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["pytorch_model.bin", "config.json"], "only pytorch_model.bin"),
        ([], "no weights at all"),
    ],
)
def test_weights_that_are_not_loaded_are_named(paths: list[str], found: str) -> None:
    with pytest.raises(UnsupportedModelError, match=found):
        weight_index(paths)


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([SINGLE_FILE], True),
        ([INDEX_FILE], True),
        (["consolidated.00.safetensors", "params.json"], True),
        (["consolidated.00.safetensors", "m.gguf", "pytorch_model.bin"], False),
    ],
)
def test_safetensors_that_can_be_loaded_are_weights(paths: list[str], expected: bool) -> None:  # noqa: FBT001
    assert has_weights(paths) is expected


def test_a_licence_comes_with_every_model() -> None:
    assert licences(NEEDED) == ["LICENSE.txt"]
