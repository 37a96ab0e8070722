"""The committed model: its size, its shape, its chat format, and that llmd answers with it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from llmd import Engine
from llmd.builtin.guide import guide_directory

FOLDER = guide_directory()
LARGEST_FILE = 12_000_000  # bytes


def header() -> dict[str, dict[str, Any]]:
    data = (FOLDER / "model.safetensors").read_bytes()
    tensors: dict[str, dict[str, Any]] = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    tensors.pop("__metadata__")
    return tensors


def test_weights_are_bf16_of_five_to_six_million_parameters_in_at_most_twelve_megabytes() -> None:
    tensors = header()
    assert {tensor["dtype"] for tensor in tensors.values()} == {"BF16"}
    assert 5e6 <= sum(math.prod(tensor["shape"]) for tensor in tensors.values()) <= 6e6
    assert (FOLDER / "model.safetensors").stat().st_size <= LARGEST_FILE


def test_the_folder_holds_only_a_model() -> None:
    names = {path.name for path in FOLDER.iterdir() if path.name != "__pycache__"}
    expected = {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert names == expected | {"__init__.py"}


def test_generation_ends_at_the_token_that_ends_a_turn() -> None:
    config = json.loads((FOLDER / "tokenizer_config.json").read_text(encoding="utf-8"))
    tokenizer = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))
    ids = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    generation = json.loads((FOLDER / "generation_config.json").read_text(encoding="utf-8"))
    assert generation["eos_token_id"] == ids[config["eos_token"]] == ids["<|end|>"]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.load("guide", device="reference") as loaded:
        yield loaded


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How do I stop the daemon?", "llmd stop --daemon"),
        ("Serve on port 7123", "--addr 127.0.0.1:7123"),
        ("What is 12 + 30?", "42"),
        ("Who wrote Hamlet?", "llmd serve DIRECTORY"),
        ("Make a JSON object with fields name, age: name is Anna, age is 31", '{"name": "Anna", "age": 31}'),
    ],
)
def test_the_guide_answers(engine: Engine, question: str, expected: str) -> None:
    assert expected in engine.generate(question, max_tokens=60, temperature=0.0).text


def test_the_guide_remembers_a_name_over_turns(engine: Engine) -> None:
    conversation = [
        {"role": "user", "content": "My name is Tamara."},
        {"role": "assistant", "content": "Nice to meet you, Tamara. Ask me anything about llmd."},
        {"role": "user", "content": "What is my name?"},
    ]
    assert "Tamara" in engine.generate(conversation, max_tokens=30, temperature=0.0).text
