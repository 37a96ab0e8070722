"""Derived models: a model of the store under another name, with its own prompts and settings.

Each is a small file. It shares the weights, and the engine that runs them, with its base model.
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

from llmd.api.decoding import prepared
from llmd.api.errors import CheckpointError, NotFoundError
from llmd.registry.names import check_model_name
from llmd.registry.short_names import LATEST

SUFFIX = ".json"


class DerivedModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """The file of a derived model."""

    base: str
    """Name of the base model."""
    created: float
    """Seconds since 1970."""
    system: str = ""
    """System prompt, placed before each conversation."""
    template: str = ""
    """Chat template that replaces the model's."""
    messages: tuple[dict[str, Any], ...] = ()
    """Messages placed before each conversation."""
    parameters: Mapping[str, Any] = {}
    """Options by Ollama's names."""
    license: str = ""

    @property
    def modified(self) -> datetime:
        return datetime.fromtimestamp(self.created, UTC)

    @property
    def is_copy(self) -> bool:
        """Whether it is its base under another name, without changes."""
        return self == DerivedModel(self.base, self.created)


class DerivedModels:
    """The derived models of a directory, by name. Holds no state; thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def names(self) -> list[str]:
        with contextlib.suppress(OSError):  # the directory does not exist yet
            files = self._directory.iterdir()
            return sorted(unquote(file.name.removesuffix(SUFFIX)) for file in files if file.suffix == SUFFIX)
        return []

    def find(self, name: str) -> tuple[str, DerivedModel] | None:
        """Find a model by its name, with or without ``:latest``; return the stored name and the model.

        Raises:
            CheckpointError: its file is damaged.
        """
        for known in (name, name.removesuffix(LATEST)):
            path = self._path(known)
            with contextlib.suppress(OSError):  # no such file, or the name is too long for one
                return known, _decoded(path, path.read_bytes())
        return None

    def save(self, name: str, model: DerivedModel) -> None:
        """Write a model; an existing one of that name is replaced.

        Raises:
            RequestError: the name is not valid.
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
            NotFoundError: there is no derived model of that name.
        """
        try:
            self._path(name).unlink()
        except OSError as error:
            raise NotFoundError(
                f"there is no derived model {name}", hint="`llmd list` shows every model"
            ) from error

    def _path(self, name: str) -> Path:
        """Return the file of a name, with slashes escaped; older files escape dots, colons and @ too."""
        older = self._directory / f"{quote(name, safe='').replace('.', '%2E')}{SUFFIX}"
        return older if os.path.lexists(older) else self._directory / f"{quote(name, safe='@:')}{SUFFIX}"


def _decoded(path: Path, content: bytes) -> DerivedModel:
    try:
        return msgspec.json.decode(content, type=prepared(DerivedModel))
    except msgspec.DecodeError as error:
        raise CheckpointError(
            f"not a valid derived model: {error}",
            file=str(path),
            hint="delete the file and create the model again",
        ) from error
