"""Damaged GGUF files."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from llmd.api import CheckpointError, LlmdError, UnsupportedModelError
from tests.corrupt.case import Case, cut
from tests.corrupt.gguf_bytes import StatedTensor, gguf
from tests.corrupt.small_model import CONFIG, SINGLE
from tests.daemon.chat.tokenizers.gguf.metadata import scored_pieces
from tests.golden.gguf_layout import Tensors, write_gguf
from tests.golden.models.tiny import TinyModel

FILE = "small.gguf"
SMALL = TinyModel("small", CONFIG)
UP = "blk.1.ffn_up.weight"
FIRST = "token_embd.weight"
IQ2_XXS = 16


def write_small_gguf(directory: Path, changes: Mapping[str, Any] | None = None, **options: Any) -> Path:
    """The small model as a GGUF file, in the place of all that it was."""
    for name in ("config.json", "tokenizer.json", SINGLE):
        (directory / name).unlink()
    keys = {**scored_pieces("x"), **(changes or {})}
    return write_gguf(SMALL, directory / FILE, changes=keys, **options)


def file_case(name: str, damage: Callable[[Path], object], *mentions: str) -> Case:
    """Damage to the file, given by its path."""

    def write_and_damage(directory: Path) -> None:
        damage(write_small_gguf(directory))

    return Case(f"gguf {name}", write_and_damage, CheckpointError, (FILE, *mentions))


def bytes_case(name: str, content: bytes, *mentions: str) -> Case:
    return file_case(name, lambda path: path.write_bytes(content), *mentions)


def patch_case(name: str, old: bytes, new: bytes, *mentions: str) -> Case:
    """Other bytes in the place of the first that are ``old``."""
    assert len(old) == len(new)
    return file_case(name, lambda path: path.write_bytes(path.read_bytes().replace(old, new, 1)), *mentions)


def key_case(
    name: str, changes: dict[str, Any], *mentions: str, error: type[LlmdError] = CheckpointError
) -> Case:
    """Other values of keys; those that are None are absent."""
    return Case(
        f"gguf {name}",
        lambda directory: write_small_gguf(directory, changes=changes),
        error,
        (FILE, *mentions),
    )


def tensor_case(name: str, edit: Callable[[Tensors], object], *mentions: str) -> Case:
    """A well-formed file with other tensors."""
    return Case(
        f"gguf {name}",
        lambda directory: write_small_gguf(directory, edit=edit),
        CheckpointError,
        (FILE, *mentions),
    )


def copy_beside(path: Path) -> None:
    path.with_name("other.gguf").write_bytes(path.read_bytes())


def replace_by_part(path: Path) -> None:
    path.rename(path.with_name("small-00001-of-00002.gguf"))


FILE_CASES = (
    bytes_case("empty", b"", "does not begin with GGUF"),
    bytes_case("zeros", bytes(4096), "does not begin with GGUF"),
    bytes_case("git lfs pointer", b"version https://git-lfs", "git lfs pull"),
    bytes_case("of ggml's older format", b"tjgg" + bytes(99), "formats before GGUF"),
    bytes_case("of version 1", gguf(version=1), "GGUF version 1"),
    bytes_case("big-endian", gguf(version=3 << 24), "big-endian"),
    bytes_case("without metadata", gguf(), "general.architecture", "is missing"),
    bytes_case("with an unknown type", gguf([], [StatedTensor("a", kind=77)]), "a: has the unknown type 77"),
    file_case("header cut", lambda path: os.truncate(path, 100), "truncated: the header needs"),
    file_case("data cut by a byte", lambda path: cut(path, 1), "truncated: ends at byte"),
    file_case("data cut by half", lambda path: os.truncate(path, path.stat().st_size // 2), "truncated"),
    file_case(
        "bytes appended", lambda path: path.write_bytes(path.read_bytes() + bytes(64)), "64 bytes follow"
    ),
    file_case("beside another", copy_beside, "holds 2 GGUF models", "other.gguf"),
    patch_case("key twice", b"llama.context_length", b"general.architecture", "occurs twice"),
    patch_case("tensor twice", b"blk.0.ffn_up.weight", b"blk.1.ffn_up.weight", UP, "occurs twice"),
    Case(
        "gguf part alone",
        lambda directory: replace_by_part(write_small_gguf(directory)),
        CheckpointError,
        ("small-00001-of-00002.gguf", "the part small-00002-of-00002.gguf is missing"),
    ),
)

KEY_CASES = (
    key_case("without a width", {"llama.embedding_length": None}, "llama.embedding_length is missing"),
    key_case("without layers", {"llama.block_count": None}, "llama.block_count is missing"),
    key_case("with a width of text", {"llama.embedding_length": "16"}, "llama.embedding_length is '16'"),
    key_case("with eps of NaN", {"llama.attention.layer_norm_rms_epsilon": math.nan}, "epsilon is nan"),
    key_case("with eps of 0", {"llama.attention.layer_norm_rms_epsilon": 0.0}, "rms_norm_eps is 0.0"),
    key_case("with negative width", {"llama.embedding_length": -16}, "hidden_size is -16"),
    key_case("with absurd layers", {"llama.block_count": 2**31 - 1}, "num_hidden_layers"),
    key_case("with more layers", {"llama.block_count": 3}, "blk.2.", "is missing"),
    key_case("with fewer layers", {"llama.block_count": 1}, "blk.1.", "answers would be wrong"),
    key_case("with another width", {"llama.embedding_length": 20}, FIRST, "has shape [260, 16]"),
    key_case("with other heads", {"llama.attention.head_count_kv": 4}, "blk.0.attn_k.weight", "has shape"),
    key_case("with heads that do not divide", {"llama.attention.head_count_kv": 3}, "does not divide"),
    key_case("with a context of 0", {"llama.context_length": 0}, "max_position_embeddings is 0"),
    key_case("with an odd rotation", {"llama.rope.dimension_count": 3}, "rotate 3 elements"),
    key_case("with alignment of 24", {"general.alignment": 24}, "general.alignment is 24"),
    key_case(
        "of an unknown architecture",
        {"general.architecture": "mamba"},
        "mamba",
        "llama",
        error=UnsupportedModelError,
    ),
    key_case("of an adapter", {"general.type": "adapter"}, "adapter", error=UnsupportedModelError),
    key_case("of experts", {"llama.expert_count": 8}, "expert_used_count is missing"),
)

TENSOR_CASES = (
    tensor_case("tensor missing", lambda t: t.pop(UP), UP, "the tensor is missing"),
    tensor_case("table missing", lambda t: t.pop(FIRST), FIRST, "the tensor is missing"),
    tensor_case("tensor transposed", lambda t: t.update({UP: t[UP].T.copy()}), UP, "has shape [16, 24]"),
    tensor_case(
        "a layer too many", lambda t: t.update({"blk.2.x.weight": np.zeros(4, np.float32)}), "blk.2.x.weight"
    ),
    tensor_case(
        "a bias too many",
        lambda t: t.update({"blk.0.attn_k.bias": np.zeros(8, np.float32)}),
        "blk.0.attn_k.bias",
        "answers would be wrong",
    ),
    tensor_case(
        "divisors of another length",
        lambda t: t.update({"rope_freqs.weight": np.ones(3, np.float32)}),
        "short_factor has 3 entries, expected 2",
    ),
    tensor_case(
        "divisors of 0", lambda t: t.update({"rope_freqs.weight": np.zeros(2, np.float32)}), "short_factor"
    ),
)

CASES = FILE_CASES + KEY_CASES + TENSOR_CASES
