"""Find the weight files of a model directory, and which file holds each tensor."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from llmd.api.errors import CheckpointError
from llmd.models.files import is_named, list_names
from llmd.models.json_file import DAMAGED, read_object

STEM = "model"


def shard_files(stem: str) -> tuple[str, str]:
    """Return the names of the single file and of the index of shards."""
    return f"{stem}.safetensors", f"{stem}.safetensors.index.json"


SINGLE_FILE, INDEX_FILE = shard_files(STEM)
MAX_INDEX_BYTES = 100_000_000
SHARD_NAME = re.compile(r"[\w.+ -]{1,200}\.safetensors", re.ASCII)
"""Without separators: a shard is in the same directory as its index."""


class Shards(msgspec.Struct, frozen=True):
    """The weight files of a model."""

    main: Path
    """The file that errors name: the single file or the index."""
    paths: tuple[Path, ...]
    weight_map: Mapping[str, str] | None = None
    """The file name for each tensor, from the index; None: all tensors of the files."""
    total_bytes: int | None = None
    """Size of all tensors, if the index states it."""


def find_shards(directory: Path, *, stem: str = STEM) -> Shards:
    """Find the weight files; a single file takes precedence over an index.

    Raises:
        CheckpointError: there are no weights, they are of another kind, or the index is invalid.
    """
    single, index = (directory / name for name in shard_files(stem))
    if is_named(single):
        return Shards(single, (single,))
    if is_named(index):
        return _read_index(index)
    raise _no_weights(directory)


def _read_index(path: Path) -> Shards:
    index = read_object(path, max_bytes=MAX_INDEX_BYTES)
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError("weight_map is missing, empty or not an object", file=str(path), hint=DAMAGED)
    for tensor, name in weight_map.items():
        _check_shard_name(tensor, name, path)
    names = dict.fromkeys(weight_map.values())
    paths = tuple(path.parent / name for name in names)
    for shard in paths:
        if not is_named(shard):
            raise CheckpointError(
                f"names the shard {shard.name}, which is missing",
                file=str(path),
                tensor=next(tensor for tensor, name in weight_map.items() if name == shard.name),
                hint=f"copy {shard.name} into {path.parent} from where the model came from",
            )
    return Shards(path, paths, weight_map, _total_bytes(index.get("metadata")))


def _check_shard_name(tensor: str, name: Any, path: Path) -> None:
    if not isinstance(name, str) or not SHARD_NAME.fullmatch(name):
        raise CheckpointError(
            f"the shard {reprlib.repr(name)} is not the name of a safetensors file next to the index",
            file=str(path),
            tensor=tensor,
            hint=DAMAGED,
        )


def _total_bytes(metadata: Any) -> int | None:
    stated = metadata.get("total_size") if isinstance(metadata, dict) else None
    return stated if type(stated) is int else None


def _no_weights(directory: Path) -> CheckpointError:
    """Return an error whose hint depends on the files found instead."""
    found = list_names(directory)
    shards = [name for name in found if name.endswith(".safetensors")]
    if len(shards) > 1:
        return CheckpointError(
            f"{INDEX_FILE} is missing, but there are {len(shards)} shards such as {shards[0]}",
            file=str(directory),
            hint=f"copy {INDEX_FILE} from where the model came from",
        )
    if shards and shards[0].startswith("consolidated"):
        return CheckpointError(
            f"{SINGLE_FILE} is missing, but there is {shards[0]}, which is in another layout",
            file=str(directory),
            hint="copy params.json, which describes that layout, from where the model came from",
        )
    if shards:
        return CheckpointError(
            f"{SINGLE_FILE} is missing, but there is {shards[0]}",
            file=str(directory),
            hint=f"if that is the whole model, rename it to {SINGLE_FILE}; else copy the missing files",
        )
    for suffixes, hint in OTHER_KINDS.items():
        other = next((name for name in found if name.endswith(suffixes)), None)
        if other:
            return CheckpointError(
                "weights of this kind cannot be read", file=str(directory / other), hint=hint
            )
    return CheckpointError(
        f"holds neither {SINGLE_FILE} nor {INDEX_FILE}",
        file=str(directory),
        hint="copy the weights from where the model came from",
    )


OTHER_KINDS: Mapping[tuple[str, ...], str] = {
    (".bin", ".pt", ".pth", ".ckpt"): (
        "pickled weights could run code; convert them to safetensors, for example with "
        "transformers: AutoModelForCausalLM.from_pretrained(DIR).save_pretrained(NEW_DIR)"
    ),
    (".h5", ".msgpack", ".onnx"): "use the model's safetensors files",
}
