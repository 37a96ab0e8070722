"""Damaged indexes and shards, and weights of another kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llmd.api import CheckpointError
from tests.corrupt.case import Case, Damage, cut
from tests.corrupt.small_model import INDEX, SHARDS, SINGLE, tensors, write_sharded
from tests.golden.checkpoint import write_safetensors

FIRST = "model.embed_tokens.weight"
UP = "model.layers.1.mlp.up_proj.weight"


def sharded_case(name: str, damage: Damage, *mentions: str) -> Case:
    """Damage to a model in two shards."""

    def shard_and_damage(directory: Path) -> None:
        write_sharded(directory)
        damage(directory)

    return Case(name, shard_and_damage, CheckpointError, mentions)


def index_case(name: str, change: Callable[[dict[str, Any]], object], *mentions: str) -> Case:
    """A change of the parsed index."""

    def damage(directory: Path) -> None:
        index = json.loads((directory / INDEX).read_text())
        change(index)
        (directory / INDEX).write_text(json.dumps(index))

    return sharded_case(name, damage, INDEX, *mentions)


def copy_tensor_to_other_shard(directory: Path) -> None:
    write_safetensors(directory / SHARDS[1], tensors(), {})


def swap(first: Path, second: Path) -> None:
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


def rename_case(name: str, *mentions: str) -> Case:
    """The weights lie there, but as another kind of file."""
    return Case(
        f"weights only as {name}",
        lambda directory: (directory / SINGLE).rename(directory / name),
        CheckpointError,
        (name, *mentions),
    )


INDEX_CASES = (
    sharded_case("shard absent", lambda d: (d / SHARDS[1]).unlink(), INDEX, SHARDS[1], "is missing"),
    sharded_case("shard cut", lambda d: cut(d / SHARDS[1], 1), SHARDS[1], "truncated"),
    sharded_case("shards swapped", lambda d: swap(d / SHARDS[0], d / SHARDS[1]), INDEX, FIRST, SHARDS[0]),
    sharded_case("tensor in two shards", copy_tensor_to_other_shard, SHARDS[1], FIRST, "is also in"),
    sharded_case("index absent", lambda d: (d / INDEX).unlink(), INDEX, "is missing, but there are 2 shards"),
    sharded_case("index cut", lambda d: cut(d / INDEX, 10), INDEX, "not valid JSON"),
    index_case("index without map", lambda index: index.pop("weight_map"), "weight_map is missing"),
    index_case("index with a list", lambda index: index.update(weight_map=[1]), "weight_map is missing"),
    index_case(
        "index leaving the directory",
        lambda index: index["weight_map"].update({UP: "../../secret.safetensors"}),
        UP,
        "is not the name of a safetensors file",
    ),
    index_case(
        "index with a number for a shard",
        lambda index: index["weight_map"].update({UP: 1}),
        UP,
        "is not the name of a safetensors file",
    ),
    index_case(
        "index with a tensor that no shard has",
        lambda index: index["weight_map"].update({"model.extra.weight": SHARDS[0]}),
        "model.extra.weight",
        SHARDS[0],
    ),
    index_case(
        "index without a tensor", lambda index: index["weight_map"].pop(UP), UP, "the tensor is missing"
    ),
)


KIND_CASES = (
    rename_case("pytorch_model.bin", "convert them to safetensors"),
    rename_case("model-q4_k_m.gguf", "does not begin with GGUF"),
    rename_case("weights.safetensors", "rename it"),
)

CASES = INDEX_CASES + KIND_CASES
