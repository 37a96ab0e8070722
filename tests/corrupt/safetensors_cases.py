"""Damaged weight files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from llmd.api import CheckpointError
from tests.corrupt.case import Case, cut
from tests.corrupt.small_model import (
    SINGLE,
    Tensors,
    read_raw,
    tensors,
    write_raw,
    write_weights,
)

UP = "model.layers.1.mlp.up_proj.weight"
FIRST = "model.embed_tokens.weight"
LAST = "lm_head.weight"
HUGE_HEADER_TENSORS = 100_000

Header = dict[str, Any]


def file_case(name: str, damage: Callable[[Path], object], *mentions: str) -> Case:
    """Damage to the single weight file, given by its path."""
    return Case(name, lambda directory: damage(directory / SINGLE), CheckpointError, (SINGLE, *mentions))


def header_case(name: str, change: Callable[[Header], object], *mentions: str) -> Case:
    """A change of the parsed header; the data stay."""

    def damage(path: Path) -> None:
        header, data = read_raw(path)
        change(header)
        write_raw(path, header, data)

    return file_case(name, damage, *mentions)


def text_case(name: str, change: Callable[[bytes], bytes], *mentions: str) -> Case:
    """A change of the header's text; the data stay."""

    def damage(path: Path) -> None:
        header, data = read_raw(path)
        write_raw(path, change(json.dumps(header).encode()), data)

    return file_case(name, damage, *mentions)


def tensor_case(name: str, change: Callable[[Tensors], object], *mentions: str) -> Case:
    """A well-formed file with other tensors."""

    def damage(directory: Path) -> None:
        content = tensors()
        change(content)
        write_weights(directory, content)

    return Case(name, damage, CheckpointError, (SINGLE, *mentions))


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("blobs/gone")


def write_large_header_with_one_fault(path: Path) -> None:
    """The costliest lie: the last of very many tensors is the faulty one."""
    header = {
        f"model.layers.{i}.w": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
        for i in range(HUGE_HEADER_TENSORS)
    }
    header["z"] = {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}
    write_raw(path, header, b"\0" * 8)


def add(content: Tensors, name: str) -> None:
    content[name] = np.zeros(4, np.float32)


def rename_all(content: Tensors) -> None:
    renamed = {f"other.{name}": array for name, array in content.items()}
    content.clear()
    content.update(renamed)


FILE_CASES = (
    file_case("no weights", Path.unlink, "holds neither"),
    file_case("empty file", lambda path: path.write_bytes(b""), "truncated: only 0 bytes"),
    file_case("shorter than a length", lambda path: path.write_bytes(b"\x10\0\0"), "truncated: only 3 bytes"),
    file_case("header cut", lambda path: os.truncate(path, 100), "truncated: the header should have"),
    file_case("data cut by a byte", lambda path: cut(path, 1), LAST, "truncated: ends at byte"),
    file_case("data cut by half", lambda path: os.truncate(path, path.stat().st_size // 2), "truncated"),
    file_case("only the header", lambda path: write_raw(path, read_raw(path)[0]), FIRST, "truncated"),
    file_case("bytes appended", lambda path: append(path, b"\0" * 64), "64 bytes follow the last tensor"),
    file_case("header length absurd", lambda path: path.write_bytes(b"\xff" * 64), "states a header of"),
    file_case("git lfs pointer", lambda path: path.write_bytes(b"version https://git-lfs"), "git lfs pull"),
    file_case(
        "zip archive", lambda path: path.write_bytes(b"PK\x03\x04\x14\0\0\0" * 9), "states a header of"
    ),
    file_case("zeros", lambda path: path.write_bytes(bytes(4096)), "does not begin with {"),
    file_case("directory instead of a file", replace_by_directory, "not a regular file"),
    file_case("pipe instead of a file", replace_by_pipe, "not a regular file"),
    file_case("dangling link", replace_by_dangling_link, "the file is missing"),
    file_case(
        "many tensors, the last one wrong", write_large_header_with_one_fault, "z", "data_offsets give 8"
    ),
)

HEADER_CASES = (
    text_case("header no json", lambda text: text[:-1] + b",", "the header is not valid JSON"),
    text_case("header not utf-8", lambda text: text.replace(b"norm", b"n\xffrm"), "not valid JSON"),
    text_case("header a list", lambda text: b"[" + text + b"]", "does not begin with {"),
    text_case("header nested deeply", lambda _: b'{"a":' * 200_000, "not valid JSON"),
    text_case("tensor twice", lambda text: b'{"lm_head.weight": {}, ' + text[1:], LAST, "occurs twice"),
    header_case("metadata no strings", lambda h: h["__metadata__"].update(format=1), "__metadata__"),
    header_case("unknown dtype", lambda h: h[UP].update(dtype="F31"), UP, "unknown dtype 'F31'"),
    header_case("dtype changed", lambda h: h[UP].update(dtype="F16"), UP, "needs 768 bytes"),
    header_case("integer dtype", lambda h: h[UP].update(dtype="I32"), UP, "has dtype I32"),
    header_case("negative dimension", lambda h: h[UP].update(shape=[-24, 16]), UP, "not a list of counts"),
    header_case("fractional dimension", lambda h: h[UP].update(shape=[24.0, 16]), UP, "not a list of counts"),
    header_case(
        "overflowing shape", lambda h: h[UP].update(shape=[2**62, 4]), UP, "no tensor can have the shape"
    ),
    header_case("shape transposed", lambda h: h[UP].update(shape=[16, 24]), UP, "has shape [16, 24]"),
    header_case("shape flattened", lambda h: h[UP].update(shape=[384]), UP, "has shape [384]"),
    header_case("no shape", lambda h: h[UP].pop("shape"), UP, "must give dtype, shape"),
    header_case("offsets reversed", lambda h: h[UP]["data_offsets"].reverse(), UP, "not a begin and an end"),
    header_case(
        "offsets overlap",
        lambda h: h[UP].update(data_offsets=h[FIRST]["data_offsets"]),
        UP,
        "data_offsets give",
    ),
    header_case(
        "two tensors on one place",
        lambda h: h["model.norm.weight"].update(
            data_offsets=h["model.layers.0.input_layernorm.weight"]["data_offsets"]
        ),
        "overlaps",
    ),
    header_case("tensor left out", lambda h: h.pop(UP), "leaves a hole"),
    header_case(
        "offsets far outside", lambda h: h[LAST].update(data_offsets=[2**40, 2**40 + 16640]), LAST, "hole"
    ),
    header_case(
        "name that cannot be shown", lambda h: h.update({"\x1b[2J": h.pop(UP)}), "cannot be the name"
    ),
    header_case("entry no object", lambda h: h.update({UP: 7}), UP, "must give dtype, shape"),
)

TENSOR_CASES = (
    tensor_case("tensor missing", lambda t: t.pop(UP), UP, "the tensor is missing"),
    tensor_case("all tensors renamed", rename_all, FIRST, "nearest name is other.model.embed_tokens.weight"),
    tensor_case("head missing", lambda t: t.pop(LAST), LAST, "the tensor is missing"),
    tensor_case("no tensors", lambda t: t.clear(), FIRST, "the tensor is missing"),
    tensor_case("a layer too many", lambda t: add(t, "model.layers.2.mlp.up_proj.weight"), "model.layers.2"),
    tensor_case(
        "a bias too many",
        lambda t: add(t, "model.layers.0.self_attn.q_proj.bias"),
        "model.layers.0.self_attn.q_proj.bias",
        "answers would be wrong",
    ),
)

CASES = FILE_CASES + HEADER_CASES + TENSOR_CASES
