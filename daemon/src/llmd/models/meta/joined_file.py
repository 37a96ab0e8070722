"""Matrices split over several files, one for each device of tensor parallelism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError
from llmd.models.checkpoint import Checkpoint
from llmd.models.mapped_file import Mapper, map_file
from llmd.models.safetensors import SafetensorsFile
from llmd.models.safetensors_header import Header, HeaderEntry
from llmd.models.shards import Shards

SPLIT_INPUTS = ("attention.wo", "feed_forward.w2")
"""Matrices that are split by columns. Other matrices are split by rows; vectors are whole in each file."""
EMBEDDING = "tok_embeddings"


class JoinedFile:
    """Several files as one: viewing a matrix joins its pieces into a copy. Thread-safe.

    Source: Shoeybi et al. 2019, "Megatron-LM".

    Raises:
        CheckpointError: the files do not hold pieces of the same matrices.
    """

    def __init__(self, files: Sequence[SafetensorsFile]) -> None:
        self.path = files[0].path
        self._files = files
        first = files[0].header.entries
        self._axes = {name: _axis(entry, first) for name, entry in first.items()}
        for file in files[1:]:
            _check_pieces(files[0], file)
        entries = {name: self._joined(entry) for name, entry in first.items()}
        self.header = Header(entries, {}, 0)

    def view(self, name: str) -> NDArray[np.generic]:
        """Return the whole tensor, as `SafetensorsFile.view` returns a piece of it."""
        axis = self._axes[name]
        if axis is None:
            return self._files[0].view(name)
        return np.concatenate([file.view(name) for file in self._files], axis)

    def fetch(self, name: str) -> None:
        """See `MappedFile.fetch`."""
        for file in self._files:
            file.fetch(name)

    def advise(self, name: str, first: int, last: int, *, needed: bool) -> None:
        """Do nothing: what is read of a matrix is a copy of its pieces."""

    def release(self) -> None:
        """See `MappedFile.release`."""
        for file in self._files:
            file.release()

    def close(self) -> None:
        for file in self._files:
            file.close()

    def _joined(self, entry: HeaderEntry) -> HeaderEntry:
        axis = self._axes[entry.name]
        if axis is None:
            return entry
        shape = list(entry.shape)
        shape[axis] *= len(self._files)
        size = (entry.end - entry.begin) * len(self._files)
        return msgspec.structs.replace(entry, shape=tuple(shape), end=entry.begin + size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def open_joined(shards: Shards, *, mapper: Mapper = map_file) -> Checkpoint:
    """Open a checkpoint whose files each hold a piece of every matrix.

    Raises:
        CheckpointError: a file is missing or damaged, or they do not hold pieces of the same matrices.
    """
    with ExitStack() as opened:
        files = [opened.enter_context(SafetensorsFile.open(path, mapper=mapper)) for path in shards.paths]
        checkpoint = Checkpoint(shards, {shards.main.name: JoinedFile(files)})
        opened.pop_all()
    return checkpoint


def _axis(entry: HeaderEntry, entries: Mapping[str, HeaderEntry]) -> int | None:
    """Return the axis along which the pieces are joined; None if each file holds the whole tensor.

    Embeddings are split by width up to Llama 2 and by token since: rows as long as the final norm are whole.
    """
    if len(entry.shape) < 2:
        return None
    module = entry.name.removesuffix(".weight")
    if module == EMBEDDING:
        norm = entries.get("norm.weight")
        return 0 if norm is not None and entry.shape[1:] == norm.shape else 1
    return 1 if module.endswith(SPLIT_INPUTS) else 0


def _check_pieces(first: SafetensorsFile, other: SafetensorsFile) -> None:
    for name in {**first.header.entries, **other.header.entries}:
        pieces = [file.header.entries.get(name) for file in (first, other)]
        stated = [None if piece is None else (piece.dtype, piece.shape) for piece in pieces]
        if stated[0] != stated[1]:
            raise CheckpointError(
                f"is {_shown(stated[1])}, in {first.path.name} {_shown(stated[0])}: not pieces of one matrix",
                file=str(other.path),
                tensor=name,
                hint="the files are of different models or versions; copy all of them again from one place",
            )


def _shown(stated: tuple[str, tuple[int, ...]] | None) -> str:
    return "missing" if stated is None else f"{stated[0]} {list(stated[1])}"
