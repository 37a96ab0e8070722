"""The open GGUF files of a model, as one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError
from llmd.models.gguf.fields import MetadataFields
from llmd.models.gguf.gguf_file import GgufFile
from llmd.models.gguf.header import GgufTensor
from llmd.models.gguf.metadata import Metadata
from llmd.models.json_file import DAMAGED
from llmd.models.mapped_file import Mapper, map_file

NUMBER, COUNT, TENSORS = "split.no", "split.count", "split.tensors.count"
OF_ONE_MODEL = "the parts are of different models or versions; copy all of them again from one place"


class GgufModel:
    """Metadata of the first file and tensors of all files. Opening reads headers only. Thread-safe."""

    def __init__(self, files: Sequence[GgufFile]) -> None:
        self.files = files
        self.owners: Mapping[str, GgufFile] = _owners(files)

    @classmethod
    def open(cls, paths: Iterable[Path], *, mapper: Mapper = map_file) -> Self:
        """Open the files of a model, given in order.

        Raises:
            CheckpointError: a file is damaged or contradicts another.
        """
        with contextlib.ExitStack() as opened:
            files = [opened.enter_context(GgufFile.open(path, mapper=mapper)) for path in paths]
            model = cls(files)
            opened.pop_all()
            return model

    @property
    def path(self) -> Path:
        return self.files[0].path

    @property
    def metadata(self) -> Metadata:
        return self.files[0].metadata

    def tensor(self, name: str) -> GgufTensor:
        """Return a required tensor.

        Raises:
            CheckpointError: the model lacks it.
        """
        if name not in self.owners:
            raise CheckpointError("the tensor is missing", file=str(self.path), tensor=name, hint=DAMAGED)
        return self.owners[name].tensors[name]

    def view(self, name: str) -> NDArray[np.generic]:
        """Return the data of an existing tensor. See `GgufFile.view`."""
        return self.owners[name].view(name)

    def close(self) -> None:
        for file in self.files:
            file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def _owners(files: Sequence[GgufFile]) -> Mapping[str, GgufFile]:
    """Return the file of each tensor; check that all parts of the model are there."""
    owners: dict[str, GgufFile] = {}
    for number, file in enumerate(files):
        _check_part(file, number, len(files))
        for name in file.tensors:
            if name in owners:
                raise CheckpointError(
                    f"is also in {owners[name].path.name}",
                    file=str(file.path),
                    tensor=name,
                    hint=OF_ONE_MODEL,
                )
            owners[name] = file
    stated = MetadataFields(files[0].metadata).integer(TENSORS, len(owners))
    if stated != len(owners):
        raise CheckpointError(
            f"states {stated} tensors, the parts hold {len(owners)}",
            file=str(files[0].path),
            hint=OF_ONE_MODEL,
        )
    return owners


def _check_part(file: GgufFile, number: int, count: int) -> None:
    fields = MetadataFields(file.metadata)
    stated_number, stated_count = fields.integer(NUMBER, 0), fields.integer(COUNT, 0) or 1
    if (stated_number, stated_count) != (number, count):
        raise CheckpointError(
            f"states that it is part {stated_number + 1} of {stated_count}; by its name it is part {number + 1} of "
            f"{count}",
            file=str(file.path),
            hint="name the parts as llama.cpp did, or copy all of them again from one place",
        )
