"""Finds the model that a name means."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from llmd.api.errors import LlmdError, NotFoundError, RequestError
from llmd.models.model_path import PATH_STARTS, is_model_path, path_error, path_name, resolved
from llmd.registry.derived import DerivedModel
from llmd.registry.name_matching import ANY, matching
from llmd.registry.short_names import short_name
from llmd.registry.store import Store
from llmd.server.errors import UnknownModelError
from llmd.server.models.adapter_model import Adapters, find_adapter
from llmd.server.models.derived_model import AnsweringModel, DerivedServedModel
from llmd.server.models.model_manager import ModelManager
from llmd.server.models.served_model import ServedModel

NEAREST = 3


class ModelTable:
    """Models by name and alias. A model in the store is loaded at its first request."""

    def __init__(
        self,
        store: Store,
        aliases: Mapping[str, str],
        manager: ModelManager,
        *,
        own_keep_alive_s: Callable[[str], float | None] = lambda _name: None,
        adapters: Callable[[], Adapters] = dict,
    ) -> None:
        """``own_keep_alive_s`` returns the keep-alive of the settings for one name; None: they have none.
        ``adapters`` returns the LoRA adapters of the settings.
        """
        self.adapters = adapters
        self.store = store
        self.aliases = aliases
        self._manager = manager
        self._own_keep_alive_s = own_keep_alive_s
        # Models outside the store, by name, so that they are found again after they were unloaded.
        self._elsewhere: dict[str, Path] = {}

    @property
    def served(self) -> tuple[ServedModel, ...]:
        """Models that are loaded or being loaded."""
        return tuple(self._manager.served.values())

    async def resolve(
        self, asked: str | None, *, allow_path: bool = False, retry: bool = False
    ) -> AnsweringModel:
        """Return the model that a name means.

        Tried in order: adapter, derived model, exact name, alias, without ``:latest``, unique prefix,
        directory. Without a name, it is the only loaded model. ``allow_path``: the client may name any
        directory of this machine. ``retry``: start it again if it has failed.

        Raises:
            NotFoundError: no model matches; the message lists the nearest names.
            RequestError: no name was given, and not exactly one model is loaded.
        """
        if not asked:
            return self._only()
        derived = self.derived_of(asked)
        if derived is not None:
            name, record = derived
            base = await self._serve(record.base, allow_path=True, retry=retry)
            return DerivedServedModel(name, record, base, self._own_keep_alive_s(name))
        return await self._serve(asked, allow_path=allow_path, retry=retry)

    def derived_of(self, asked: str) -> tuple[str, DerivedModel] | None:
        """Return the name and the record of the derived model that ``asked`` means; None if it means none.

        A model with an adapter is one, by its exact name.

        Raises:
            CheckpointError: the model's file is damaged.
        """
        if (adapter := find_adapter(self.adapters(), asked)) is not None:
            return adapter
        derived = self.store.derived
        if (exact := derived.find(asked)) is not None:
            return exact
        known = derived.names()
        names = matching(asked, self.aliases, {*known, *self.directories()}) if known else []
        return derived.find(names[0]) if len(names) == 1 and names[0] in known else None

    async def _serve(self, asked: str, *, allow_path: bool, retry: bool) -> ServedModel:
        name, directory = self.locate(asked, allow_path=allow_path)
        if name not in self._manager.served and self.store.directories().get(name) != directory:
            self._elsewhere[name] = directory
        return await self._manager.serve(name, directory, retry=retry)

    def locate(self, asked: str, *, allow_path: bool = False) -> tuple[str, Path]:
        """Return the name and directory of a model that is not derived, loaded or not. A model's own path is
        one of its names.

        Raises:
            NotFoundError: no model matches; the message lists the nearest names.
        """
        directories = self.directories()
        derived = self.store.derived.names()
        names = matching(asked, self.aliases, {*directories, *derived})
        if len(names) == 1 and names[0] in directories:
            return names[0], directories[names[0]]
        for name, known in directories.items():
            if str(known) == asked:
                return name, known
        if allow_path and (directory := _directory(asked)) is not None:
            return self._name_of(directory, directories), directory
        if asked.startswith(PATH_STARTS):
            raise (path_error(asked) if allow_path else None) or _path_refused(asked)
        raise _unknown(asked, names, {*directories, *derived, *self.aliases})

    def directories(self) -> dict[str, Path]:
        """Every model that a request may name: those in the store, and those given by path."""
        return {**self._elsewhere, **self.store.directories()}

    async def unload(self, name: str, error: LlmdError | None = None) -> None:
        """End a model's engine.

        Raises:
            NotFoundError: it is not loaded.
        """
        await self._manager.unload(self.find_served(name).name, error)

    def find_served(self, asked: str | None) -> ServedModel:
        """Return a model that is loaded or being loaded; without a name, the only one. For a derived model
        it is the base.

        Raises:
            NotFoundError: it is not loaded.
            RequestError: no name was given, and not exactly one model is loaded.
        """
        if not asked:
            return self._only()
        served = self._manager.served
        derived = self.derived_of(asked)
        if derived is not None:
            asked = self.locate(derived[1].base, allow_path=True)[0]
        at_path = [name for name, model in served.items() if str(model.directory) == asked]
        name = next(iter(matching(asked, self.aliases, served) or at_path), asked)
        if name not in served:
            loaded = ", ".join(served) or "none"
            raise NotFoundError(f"{name} is not loaded; loaded: {loaded}", hint="see `llmd ps`")
        return served[name]

    def names_of(self, model: str) -> list[str]:
        """Return a model's name and its aliases, except patterns."""
        mine = (alias for alias, name in self.aliases.items() if name == model and ANY not in alias)
        return [model, *mine]

    def _name_of(self, directory: Path, taken: Mapping[str, Path]) -> str:
        """Return the directory's name, or its path if another model has that name."""
        name = path_name(directory)
        return name if taken.get(name, directory) == directory else str(directory)

    def _only(self) -> ServedModel:
        served = self._manager.served
        if len(served) == 1:
            return next(iter(served.values()))
        loaded = ", ".join(served) or "none"
        raise RequestError(
            f"the request names no model, and {len(served)} are loaded: {loaded}",
            param="model",
            hint="set `model` to a name from GET /v1/models",
        )


def _directory(asked: str) -> Path | None:
    path = Path(asked)
    try:
        return resolved(path) if "/" in asked and is_model_path(path) else None
    except OSError:  # too long for a path, or not readable for this user
        return None


def _path_refused(asked: str) -> NotFoundError:
    """Refuse a path without revealing whether it exists."""
    return NotFoundError(
        f"{asked} is a path, and paths may be given only over the Unix socket",
        hint="serve it with `llmd serve PATH`, or send the request over the daemon's Unix socket",
    )


def _unknown(asked: str, names: list[str], known: Iterable[str]) -> NotFoundError:
    if len(names) > 1:
        return NotFoundError(
            f"{len(names)} models begin with {asked}: {', '.join(names[:NEAREST])}",
            hint="give the whole name",
        )
    if (entry := short_name(asked)) is not None:
        return UnknownModelError(
            f"{asked} stands for {entry.repo}, which is not on this machine",
            asked=asked,
            hint=f"fetch it with `llmd pull {asked}`",
        )
    nearest = difflib.get_close_matches(asked, known, n=NEAREST, cutoff=0.0)
    return UnknownModelError(
        f"there is no model {asked}; the nearest names are {', '.join(nearest) or 'none'}",
        asked=asked,
        hint="`llmd list` shows every model, `llmd pull ORG/NAME` fetches one",
    )
