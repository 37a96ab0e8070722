"""The models of this machine: the built-in ones, and the directories below the data directory's ``models/``.

Nothing is registered or indexed: a directory placed there is in the store. Models that llmd downloads are
kept by `PulledModels` and are linked there.
"""

from __future__ import annotations

import difflib
import reprlib
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from llmd.api.errors import CheckpointError, ConflictError, NotFoundError
from llmd.models.model_path import is_model_path, path_error, path_name, resolved
from llmd.registry.derived import DerivedModel, DerivedModels
from llmd.registry.model_folders import model_folders
from llmd.registry.name_matching import matching
from llmd.registry.names import DERIVED, check_model_name
from llmd.registry.pulled_models import PulledModels
from llmd.registry.short_names import short_name
from llmd.registry.stored_model import StoredModel, describe


class Store:
    """Finds models by name. Holds no state: every call reads the disk again. Thread-safe.

    ``derived`` are the models derived from these; ``library`` installs, copies and removes models.
    """

    def __init__(self, models_directory: Path, builtin: Mapping[str, Path]) -> None:
        self._models_directory = models_directory
        self._builtin = builtin
        self.derived = DerivedModels(models_directory / DERIVED)
        self.pulled_models = PulledModels(models_directory, builtin)

    def list(self) -> list[StoredModel]:
        """Return every model in order of names; broken ones state the reason. Reads headers only."""
        return [self._describe(name, directory) for name, directory in self.directories().items()]

    def list_derived(self) -> tuple[StoredModel, ...]:
        """Return each derived model: its base under the derived name, or a reason if the base is gone."""
        return tuple(self._derived(name) for name in self.derived.names())

    def _derived(self, name: str) -> StoredModel:
        try:
            return self._describe_derived(name)
        except (CheckpointError, NotFoundError) as error:
            return StoredModel(name, Path(), datetime.now(UTC), reason=str(error))

    def _describe_derived(self, name: str) -> StoredModel:
        """Describe a derived model.

        Raises:
            CheckpointError: its file is damaged.
            NotFoundError: its base is gone.
        """
        found = self.derived.find(name)
        if found is None:  # just removed
            raise NotFoundError(f"there is no model {name}", hint="`llmd list` shows every model")
        record = found[1]
        directory = self.directories().get(record.base) or _as_path(record.base)
        if directory is None:
            raise NotFoundError(
                f"{name} is derived from {record.base}, which is not on this machine",
                hint=f"put {record.base} back, or remove {name} with `llmd rm {name}`",
            )
        known = self._describe(record.base, directory)
        return msgspec.structs.replace(
            known, name=name, modified=record.modified, builtin=False, base=record.base
        )

    def record_of(self, model: StoredModel) -> DerivedModel | None:
        """Return what a derived model changes; None for other models."""
        found = self.derived.find(model.name) if model.base else None
        return None if found is None else found[1]

    def copy(self, source: str, name: str) -> None:
        """Give a model another name without copying its files.

        The copy of a pulled model shares its version, and outlives it. That of another model is derived from
        it without changes; that of a derived model is derived from the same base.

        Raises:
            NotFoundError: there is no such model.
            ConflictError: the name is taken.
            RequestError: the name is not valid.
        """
        known = self.find(source, allow_path=True)
        name = check_model_name(name)
        if name in self.names():
            raise ConflictError(
                f"there is already a model {name}",
                hint=f"choose another name, or remove it with `llmd rm {name}`",
            )
        record = self.record_of(known)
        if record is None and self.pulled_models.version_of(known.directory) is not None:
            self.pulled_models.copy(known.directory, name)
            return
        is_stored = self.directories().get(known.name) == known.directory
        record = record or DerivedModel(known.name if is_stored else str(known.directory), 0.0)
        self.derived.save(name, msgspec.structs.replace(record, created=time.time()))

    def names(self) -> set[str]:
        """Return the name of every model, derived ones too."""
        return {*self.directories(), *self.derived.names()}

    def directories(self) -> dict[str, Path]:
        """Return the directory of each name. Built-in models take precedence."""
        found = dict(model_folders(self._models_directory))
        return dict(sorted((found | dict(self._builtin)).items()))

    @property
    def builtin_names(self) -> tuple[str, ...]:
        return tuple(self._builtin)

    def is_builtin(self, name: str) -> bool:
        """Whether the model is shipped with llmd."""
        return name in self._builtin

    def is_pulled(self, name: str) -> bool:
        """Whether llmd downloaded the model with exactly this name."""
        directory = self.directories().get(name)
        return directory is not None and self.pulled_models.version_of(directory) is not None

    def find(self, name: str, *, allow_path: bool) -> StoredModel:
        """Find a model by exact name, by name without ``:latest``, by short name, by unique prefix, or
        by path. A derived model is its base under the derived name.

        ``allow_path`` says whether the caller may name a directory or a GGUF file anywhere on this machine. A
        broken model is found too; its ``reason`` says what is wrong.

        Raises:
            NotFoundError: no model matches, or several do; the message gives the nearest names. For a path it
                says whether the path exists. Or the base of a derived model is gone.
            CheckpointError: the file of a derived model is damaged.
        """
        directories, derived = self.directories(), self.derived.names()
        names = matching(name, {}, {*directories, *derived})
        if len(names) == 1:
            is_derived = names[0] in derived
            return (
                self._describe_derived(names[0])
                if is_derived
                else self._describe(names[0], directories[names[0]])
            )
        if allow_path and (path := _as_path(name)) is not None:
            return describe(path_name(path), path)
        if allow_path and not names and name and (error := path_error(name)) is not None:
            raise error
        raise _not_found(name, names, [*directories, *derived])

    def _describe(self, name: str, directory: Path) -> StoredModel:
        known = describe(name, directory, builtin=self.is_builtin(name))
        manifest = None if known.builtin else self.pulled_models.manifest_of(directory)
        if manifest is None:
            return known
        return msgspec.structs.replace(known, source=manifest.source, commit=manifest.commit)


def _as_path(name: str) -> Path | None:
    try:
        path = resolved(Path(name).expanduser())
        return path if name and is_model_path(path) else None
    except (OSError, RuntimeError, ValueError):  # too long for a path, unknown home directory, null byte
        return None


def _not_found(name: str, meant: list[str], known: list[str]) -> NotFoundError:
    if meant:
        return NotFoundError(
            f"{len(meant)} models begin with {name!r}: {', '.join(meant[:3])}",
            hint="give the whole name",
        )
    if (entry := short_name(name)) is not None:
        return NotFoundError(
            f"{name} stands for {entry.repo}, which is not on this machine",
            hint=f"fetch it with `llmd pull {name}`",
        )
    nearest = difflib.get_close_matches(name, known, n=3, cutoff=0.0)
    return NotFoundError(
        f"there is no model {reprlib.repr(name)}; the nearest names are {', '.join(nearest) or 'none'}",
        hint="`llmd list` shows every model, and `llmd pull ORG/NAME` downloads one; give a directory or a "
        "GGUF file by its path",
    )
