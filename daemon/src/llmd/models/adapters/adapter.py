"""A LoRA adapter in a file: pairs of matrices, each for a module of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError
from llmd.models.checkpoint import Entry, WeightFile

Rows = NDArray[np.generic]
RowOrder = Callable[[Rows], Rows]
"""Returns the rows of a matrix in another order."""


class Change(msgspec.Struct, frozen=True):
    """What an adapter changes of a module: the names of both matrices in the file, and what they mean."""

    a: str
    """``[rank, in]``."""
    b: str
    """``[out, rank]``."""
    rank: int
    """As the adapter states it."""
    scale: float
    order: RowOrder | None = None
    """How the rows of ``b`` become those of the model's weight; None: they are in its order."""


class AdapterForm(Protocol):
    """How a model's checkpoint names and orders the matrices that adapters change."""

    @property
    def architecture(self) -> str:
        """The architecture that GGUF files of such models state; empty: they are no GGUF files."""
        ...

    def module(self, module: str) -> str:
        """Return the name here of a module of transformers.

        Raises:
            UnsupportedModelError: its matrix is stored in another form.
        """
        ...

    def row_order(self, module: str) -> RowOrder | None:
        """Return the order here of the rows of a module of transformers; None: as there."""
        ...


class AsTrained:
    """The `AdapterForm` of models as transformers stores them."""

    architecture = ""

    def module(self, module: str) -> str:
        return module

    def row_order(self, module: str) -> RowOrder | None:
        return None


class _Header(msgspec.Struct, frozen=True):
    """See `llmd.models.checkpoint.Header`."""

    entries: Mapping[str, Entry]


class Adapter:
    """An adapter whose headers are read.

    It is a `llmd.models.checkpoint.WeightFile`, in which the names of tensors begin with the adapter's, so
    that they differ from those of the model and of other adapters.
    """

    def __init__(self, name: str, file: WeightFile, changes: Mapping[str, Change]) -> None:
        """``changes`` has what it changes by module, as the model names it."""
        self.name = name
        self.path = file.path
        self.changes = changes
        self.header = _Header({self.tensor(stored): entry for stored, entry in file.header.entries.items()})
        self._file = file
        self._orders = {change.b: change.order for change in changes.values() if change.order}

    def tensor(self, stored: str) -> str:
        """Return the name here of a tensor that the file has as ``stored``."""
        return f"{self.name}: {stored}"

    def entry(self, stored: str) -> Entry:
        """Return what the header says of a tensor of the file."""
        return self._file.header.entries[stored]

    def view(self, name: str) -> Rows:
        """Return a tensor by its name here, rows in the model's order: mapped if that is the file's."""
        stored = self._stored(name)
        rows = self._file.view(stored)
        return self._orders[stored](rows) if stored in self._orders else rows

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


def check_pairs(file: WeightFile, pairs: Mapping[str, tuple[str, str]]) -> None:
    """Check that a file has both matrices of each module.

    Raises:
        CheckpointError: it has only one of them, or none at all.
    """
    for pair in pairs.values():
        for name in pair:
            if name not in file.header.entries:
                raise CheckpointError(
                    "the tensor is missing, its other matrix is there",
                    file=str(file.path),
                    tensor=name,
                    hint="copy the adapter again from where it came from",
                )
    if not pairs:
        raise CheckpointError("has no tensors", file=str(file.path), hint="copy the adapter again")
