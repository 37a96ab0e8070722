"""A LoRA adapter as PEFT writes it: a directory with its configuration and its matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.models.adapters.adapter_config import AdapterConfig, read_adapter_config
from llmd.models.checkpoint import Checkpoint
from llmd.models.mapped_file import Mapper, map_file
from llmd.models.safetensors import SafetensorsFile
from llmd.models.safetensors_header import HeaderEntry

WEIGHTS_FILE = "adapter_model.safetensors"
PREFIX = "base_model.model."
"""Begins the names of all tensors: PEFT's model, and the model in it."""
FIRST, SECOND = ".lora_A.weight", ".lora_B.weight"
"""The ends of the names of both matrices of a module, ``[rank, in]`` and ``[out, rank]``."""


class _Header(msgspec.Struct, frozen=True):
    """See `llmd.models.checkpoint.Header`."""

    entries: Mapping[str, HeaderEntry]


class Adapter:
    """An adapter whose headers are read.

    It is a `llmd.models.checkpoint.WeightFile`, in which the names of tensors begin with the adapter's, so
    that they differ from those of the model and of other adapters.
    """

    def __init__(self, name: str, config: AdapterConfig, file: SafetensorsFile) -> None:
        self.name = name
        self.config = config
        self.path = file.path
        entries = {self.tensor(stored): entry for stored, entry in file.header.entries.items()}
        self.header = _Header(entries)
        self._file = file

    @classmethod
    def open(cls, name: str, directory: Path, *, mapper: Mapper = map_file) -> Self:
        """Open the adapter in a directory.

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
        return cls(name, config, SafetensorsFile.open(path, mapper=mapper))

    def tensor(self, stored: str) -> str:
        """Return the name here of a tensor that the file has as ``stored``."""
        return f"{self.name}: {stored}"

    def modules(self) -> list[str]:
        """Return the modules that the adapter changes, by their names in the model, in order.

        Raises:
            CheckpointError: a module has only one of its two matrices, or the file has none at all.
            UnsupportedModelError: the file has other tensors than these matrices.
        """
        stored = list(self._file.header.entries)
        for name in stored:
            if not (name.startswith(PREFIX) and name.endswith((FIRST, SECOND))):
                raise UnsupportedModelError(
                    f"{self.path}: {name}: llmd applies lora_A and lora_B of linear layers, and no other tensors",
                    hint="merge the adapter into the model and serve the result",
                )
        modules = dict.fromkeys(name.removeprefix(PREFIX)[: -len(FIRST)] for name in stored)
        for module in modules:
            for end in (FIRST, SECOND):
                if f"{PREFIX}{module}{end}" not in self._file.header.entries:
                    raise CheckpointError(
                        "the tensor is missing, its other matrix is there",
                        file=str(self.path),
                        tensor=f"{PREFIX}{module}{end}",
                        hint="copy the adapter again from where it came from",
                    )
        if not modules:
            raise CheckpointError("has no tensors", file=str(self.path), hint="copy the adapter again")
        return list(modules)

    def shape(self, stored: str) -> tuple[int, ...]:
        """Return the shape of a tensor of the file."""
        return self._file.header.entries[stored].shape

    def view(self, name: str) -> NDArray[np.generic]:
        """Return a tensor by its name here. See `SafetensorsFile.view`."""
        return self._file.view(self._stored(name))

    def fetch(self, name: str) -> None:
        """See `SafetensorsFile.fetch`."""
        self._file.fetch(self._stored(name))

    def advise(self, name: str, first: int, last: int, *, needed: bool) -> None:
        """See `SafetensorsFile.advise`."""
        self._file.advise(self._stored(name), first, last, needed=needed)

    def release(self) -> None:
        """See `SafetensorsFile.release`."""
        self._file.release()

    def close(self) -> None:
        """Close the file; arrays that were returned stay valid."""
        self._file.close()

    def _stored(self, name: str) -> str:
        return name.removeprefix(self.tensor(""))


def add_adapters(
    checkpoint: Checkpoint, adapters: Mapping[str, str], *, mapper: Mapper = map_file
) -> Sequence[Adapter]:
    """Open LoRA adapters, given as directories by name, and add their tensors to a checkpoint.

    Raises:
        CheckpointError: a file of an adapter is missing or damaged.
        UnsupportedModelError: an adapter has something that llmd does not apply.
    """
    opened = []
    for name, directory in adapters.items():
        opened.append(Adapter.open(name, Path(directory), mapper=mapper))
        checkpoint.add(opened[-1])
    return opened
