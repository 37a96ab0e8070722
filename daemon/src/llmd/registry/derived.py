"""Derived models: a model of the store under another name, with words and settings of its own.

Each is a small file; the weights stay those of the model that it is derived from, and so does the engine that runs them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from llmd.api.errors import CheckpointError, NotFoundError
from llmd.registry.names import check_model_name

LATEST = ":latest"
SUFFIX = ".json"


class DerivedModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """``base`` names the model underneath.

    ``system`` and ``messages`` stand before a conversation; ``template`` is a chat template in place of the model's.
    ``parameters`` are options by Ollama's names. ``created`` is in seconds since 1970.
    """

    base: str
    created: float
    system: str = ""
    template: str = ""
    messages: tuple[dict[str, Any], ...] = ()
    parameters: Mapping[str, Any] = {}
    license: str = ""

    @property
    def modified(self) -> datetime:
        return datetime.fromtimestamp(self.created, UTC)


class DerivedModels:
    """The files of a directory, by the names of their models. Holds no state; thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def names(self) -> list[str]:
        """Every name."""
        with contextlib.suppress(OSError):  # not there yet
            files = self._directory.iterdir()
            return sorted(unquote(file.name.removesuffix(SUFFIX)) for file in files if file.suffix == SUFFIX)
        return []

    def find(self, name: str) -> tuple[str, DerivedModel] | None:
        """The model of that name, with or without ``:latest``, and what it is called.

        Raises:
            CheckpointError: its file is damaged.
        """
        for known in (name, name.removesuffix(LATEST)):
            path = self._path(known)
            with contextlib.suppress(OSError):  # there is none, or the name is longer than files may have
                return known, _decoded(path, path.read_bytes())
        return None

    def save(self, name: str, model: DerivedModel) -> None:
        """Write a model, in place of one of that name.

        Raises:
            RequestError: no model may have that name.
        """
        name = check_model_name(name)
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._path(name)
        new = path.with_name(f".{path.name}.{os.getpid()}")
        new.write_bytes(msgspec.json.encode(model))
        new.replace(path)

    def remove(self, name: str) -> None:
        """Delete a model.

        Raises:
            NotFoundError: there is none of that name.
        """
        try:
            self._path(name).unlink()
        except OSError as error:
            raise NotFoundError(
                f"there is no derived model {name}", hint="`llmd list` shows every model"
            ) from error

    def _path(self, name: str) -> Path:
        """A slash of the name is escaped. Older files have dots, colons and @ escaped, too."""
        older = self._directory / f"{quote(name, safe='').replace('.', '%2E')}{SUFFIX}"
        return older if os.path.lexists(older) else self._directory / f"{quote(name, safe='@:')}{SUFFIX}"


def _decoded(path: Path, content: bytes) -> DerivedModel:
    try:
        return msgspec.json.decode(content, type=DerivedModel)
    except msgspec.DecodeError as error:
        raise CheckpointError(
            f"this is no derived model: {error}", file=str(path), hint="delete the file and create it anew"
        ) from error
