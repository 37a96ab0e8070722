"""Open an adapter as PEFT writes it: a directory with its configuration and its matrices."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.models.adapters.adapter import Adapter, AdapterForm, Change, check_pairs
from llmd.models.adapters.adapter_config import read_adapter_config
from llmd.models.mapped_file import Mapper, map_file
from llmd.models.safetensors import SafetensorsFile

WEIGHTS_FILE = "adapter_model.safetensors"
PREFIX = "base_model.model."
"""Begins the names of all tensors: PEFT's model, and the model in it."""
FIRST, SECOND = ".lora_A.weight", ".lora_B.weight"
"""The ends of the names of both matrices of a module, ``[rank, in]`` and ``[out, rank]``."""


def open_peft(name: str, directory: Path, form: AdapterForm, *, mapper: Mapper = map_file) -> Adapter:
    """Open the adapter in a directory, for a model of some form.

    Raises:
        CheckpointError: a file is missing, damaged or contradicts the other.
        UnsupportedModelError: the adapter has something that llmd does not apply.
    """
    config = read_adapter_config(directory)
    path = directory / WEIGHTS_FILE
    if not path.is_file():
        raise CheckpointError(
            "there is no such file",
            file=str(path),
            hint="save the adapter as safetensors (`save_pretrained` of PEFT does)",
        )
    with contextlib.ExitStack() as opened:
        file = SafetensorsFile.open(path, mapper=mapper)
        opened.callback(file.close)
        pairs = _pairs(file)
        check_pairs(file, pairs)
        changes = {
            form.module(module): Change(
                *pair, config.rank_of(module), config.scale_of(module), form.row_order(module)
            )
            for module, pair in pairs.items()
        }
        opened.pop_all()
        return Adapter(name, file, changes)


def _pairs(file: SafetensorsFile) -> Mapping[str, tuple[str, str]]:
    """Return the matrices of each module, by its name in the model, in order."""
    stored = list(file.header.entries)
    for name in stored:
        if not (name.startswith(PREFIX) and name.endswith((FIRST, SECOND))):
            raise UnsupportedModelError(
                f"{file.path}: {name}: llmd applies lora_A and lora_B of linear layers, and no other tensors",
                hint="merge the adapter into the model and serve the result",
            )
    modules = dict.fromkeys(name.removeprefix(PREFIX)[: -len(FIRST)] for name in stored)
    return {module: (f"{PREFIX}{module}{FIRST}", f"{PREFIX}{module}{SECOND}") for module in modules}
