"""The weights of a model: one or several files, as one mapping of names to tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError
from llmd.api.integer_formats import INTEGER_FORMATS, OWN_FORMATS
from llmd.api.tensors import PLAIN_FORMATS, SCALED_FORMATS, Format
from llmd.models.activation_scales import without_activation_scales
from llmd.models.json_file import DAMAGED
from llmd.models.mapped_file import Mapper, map_file
from llmd.models.nvfp4_tensors import with_nvfp4
from llmd.models.safetensors import SafetensorsFile
from llmd.models.scaled_tensors import with_scales
from llmd.models.shards import Shards
from llmd.models.split_formats import joined
from llmd.models.stacks import stacked

STORED_FORMATS: Mapping[str, Format] = {
    **{name.upper(): name for name in (*PLAIN_FORMATS, *SCALED_FORMATS)},
    **{name.upper(): name for name in INTEGER_FORMATS if name not in OWN_FORMATS},
}
"""Weight formats by the dtype in a file's header (plain formats, and the block formats of GGUF files), or by
that of joined tensors."""


class TensorInfo(msgspec.Struct, frozen=True):
    """A tensor as described by a file's header, or a stack of such tensors."""

    name: str
    dtype: str
    """The header's name for it."""
    shape: tuple[int, ...]
    file: Path
    begin: int
    """Byte offset in the file's tensor data."""
    size_bytes: int
    """Stored size."""
    members: tuple[TensorInfo, ...] = ()
    """The tensors of a stack that is stored as several; its place is that of the first."""
    pieces: tuple[TensorInfo, ...] = ()
    """The tensors of a weight whose codes and scales are stored apart (`llmd.models.split_formats`,
    `llmd.models.nvfp4_tensors`, `llmd.models.scaled_tensors`)."""

    @property
    def format(self) -> Format | None:
        """The weight format; None for integers and other dtypes that weights do not use."""
        return STORED_FORMATS.get(self.dtype)

    @property
    def stored(self) -> tuple[TensorInfo, ...]:
        """The tensors of the files that hold it."""
        within = (*self.members, *self.pieces)
        return tuple(one for inner in within for one in inner.stored) or (self,)


class Entry(Protocol):
    """A tensor in a header: its dtype (of elements or blocks), its shape, and the range of its bytes."""

    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int: ...


class Header(Protocol):
    """The header of a file of tensors."""

    @property
    def entries(self) -> Mapping[str, Entry]: ...


class WeightFile(Protocol):
    """A file of tensors, or an object that acts as one.

    See `SafetensorsFile` and `llmd.models.gguf.gguf_file.GgufFile`.
    """

    path: Path

    @property
    def header(self) -> Header: ...

    def view(self, name: str) -> NDArray[np.generic]: ...

    def fetch(self, name: str) -> None: ...

    def advise(self, name: str, first: int, last: int, *, needed: bool) -> None: ...

    def release(self) -> None: ...

    def close(self) -> None: ...


class Checkpoint:
    """All tensors of a model. Opening reads headers only; `view` maps the data. Thread-safe.

    Codes and scales that are stored apart are joined, then experts that are stored one by one. ``file`` is
    the path shown in errors: the single file, or the index. ``notices`` are sentences about harmless
    oddities.
    """

    def __init__(self, shards: Shards, files: Mapping[str, WeightFile]) -> None:
        owners = _owners(shards, files)
        self.file = shards.main
        stored = {name: _info(name, owners[name]) for name in owners}
        weights = without_activation_scales(stored)
        self.tensors: Mapping[str, TensorInfo] = stacked(with_scales(with_nvfp4(joined(weights))))
        self.notices = _notices(shards, files, stored)
        self._base = self.tensors
        self._files = dict(files)
        self._owners = owners

    @classmethod
    def open(cls, shards: Shards, *, mapper: Mapper = map_file) -> Self:
        """Open the files of ``shards``.

        Raises:
            CheckpointError: a file is missing or damaged, or contradicts the index or another file.
        """
        files: dict[str, SafetensorsFile] = {}
        try:
            for path in shards.paths:
                files[path.name] = SafetensorsFile.open(path, mapper=mapper)
            return cls(shards, files)
        except BaseException:
            _close(files.values())
            raise

    def add(self, file: WeightFile) -> None:
        """Add the tensors of an adapter, whose names are new. The checkpoint owns the file from now on.

        `num_parameters` and `size_bytes` stay those of the model alone.
        """
        added = {name: _info(name, file) for name in file.header.entries}
        self.tensors = {**self.tensors, **added}
        self._owners = {**self._owners, **dict.fromkeys(added, file)}
        self._files[str(file.path)] = file

    @property
    def num_parameters(self) -> int:
        return sum(math.prod(tensor.shape) for tensor in self._base.values())

    @property
    def size_bytes(self) -> int:
        return sum(tensor.size_bytes for tensor in self._base.values())

    def view(self, name: str) -> NDArray[np.generic]:
        """Return a tensor as stored in its file: mapped if it is contiguous there.

        Raises:
            CheckpointError: there is no such tensor, or its file has shrunk.
        """
        if name not in self._owners:
            raise CheckpointError("there is no such tensor", file=str(self.file), tensor=name, hint=DAMAGED)
        return self._owners[name].view(name)

    def fetch(self, name: str) -> None:
        """Read a tensor from the disk into the page cache before it is used.

        Raises:
            OSError: it cannot be read.
        """
        self._owners[name].fetch(name)

    def advise(self, name: str, first: int, last: int, *, needed: bool) -> None:
        """Begin to read the bytes ``[first, last)`` of a tensor from the disk, or drop their mapped pages."""
        self._owners[name].advise(name, first, last, needed=needed)

    def release(self) -> None:
        """Drop the mapped pages of the files from this process; views stay valid."""
        for file in self._files.values():
            file.release()

    def close(self) -> None:
        _close(self._files.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def _close(files: Iterable[WeightFile]) -> None:
    for file in files:
        file.close()


def _info(name: str, file: WeightFile) -> TensorInfo:
    entry = file.header.entries[name]
    return TensorInfo(name, entry.dtype, entry.shape, file.path, entry.begin, entry.end - entry.begin)


def _owners(shards: Shards, files: Mapping[str, WeightFile]) -> Mapping[str, WeightFile]:
    """Return the file of each tensor; an index must name the only file that holds it."""
    owners: dict[str, WeightFile] = {}
    for file in files.values():
        for name in file.header.entries:
            if name in owners:
                raise CheckpointError(
                    f"is also in {owners[name].path.name}", file=str(file.path), tensor=name, hint=DAMAGED
                )
            owners[name] = file
    if shards.weight_map is None:
        return owners
    for name, shard in shards.weight_map.items():
        if name not in files[shard].header.entries:
            raise CheckpointError(
                f"the index says that {shard} holds it, but it does not",
                file=str(shards.main),
                tensor=name,
                hint="index and shards are of different versions; copy them again from one place",
            )
    return {name: owners[name] for name in shards.weight_map}


def _notices(
    shards: Shards, files: Mapping[str, WeightFile], tensors: Mapping[str, TensorInfo]
) -> tuple[str, ...]:
    found: list[str] = []
    unlisted = [name for file in files.values() for name in file.header.entries if name not in tensors]
    if unlisted:
        found.append(
            f"{shards.main.name} does not list {len(unlisted)} tensors of its shards: {unlisted[0]}, …"
        )
    held = sum(tensor.size_bytes for tensor in tensors.values())
    if shards.total_bytes not in {None, held}:
        found.append(
            f"{shards.main.name} states {shards.total_bytes} bytes of tensors, the shards hold {held}"
        )
    return tuple(found)
