"""The ``consolidated`` files of a model in Meta's layout."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from llmd.api.errors import CheckpointError
from llmd.models.files import is_named, list_names
from llmd.models.shards import Shards, find_shards, shard_files

STEM = "consolidated"
PIECE_NAME = re.compile(r"consolidated\.\d{2}\.safetensors", re.ASCII)
PICKLED_NAME = re.compile(r"consolidated\.\d{2}\.pth", re.ASCII)


def has_weights(directory: Path) -> bool:
    """Whether there are weights: `find_weights` returns them, or refuses them because they are pickled."""
    names = list_names(directory)
    return bool(
        {*names}.intersection(shard_files(STEM))
        or _matching(names, PIECE_NAME)
        or _matching(names, PICKLED_NAME)
    )


def find_weights(directory: Path) -> tuple[Shards, bool]:
    """Return the weight files, and whether each holds a piece of every matrix.

    The pieces are ``consolidated.NN.safetensors``, one for each device of tensor parallelism. Mistral's
    single file has no number; its shards have an index like those of transformers.

    Raises:
        CheckpointError: there are no weights, a file is missing, or they are pickled.
    """
    if any(is_named(directory / name) for name in shard_files(STEM)):
        return find_shards(directory, stem=STEM), False
    names = _matching(list_names(directory), PIECE_NAME)
    if not names:
        raise _no_weights(directory)
    expected = [f"{STEM}.{number:02}.safetensors" for number in range(len(names))]
    missing = sorted(set(expected) - set(names))
    if missing:
        raise CheckpointError(
            f"{missing[0]} is missing, but there is {names[-1]}",
            file=str(directory),
            hint=f"copy {missing[0]} from where the model came from",
        )
    paths = tuple(directory / name for name in names)
    return Shards(paths[0], paths), len(paths) > 1


def _matching(names: Iterable[str], pattern: re.Pattern[str]) -> list[str]:
    return [name for name in names if pattern.fullmatch(name)]


def _no_weights(directory: Path) -> CheckpointError:
    pickled = _matching(list_names(directory), PICKLED_NAME)
    if not pickled:
        return CheckpointError(
            f"holds neither {STEM}.safetensors nor {STEM}.00.safetensors",
            file=str(directory),
            hint="copy the weights from where the model came from",
        )
    return CheckpointError(
        "pickled weights could run code and are not read",
        file=str(directory / pickled[0]),
        hint="convert each .pth to safetensors under the same name, with unchanged tensors, with torch and "
        "safetensors.torch: save_file({k: v.clone() for k, v in "
        'torch.load("consolidated.00.pth", weights_only=True).items()}, "consolidated.00.safetensors")',
    )
