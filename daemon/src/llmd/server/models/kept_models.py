"""The models that are loaded at the start because the user named them, and stay loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llmd.config import Settings
from llmd.server.models.derived_model import AnsweringModel, DerivedServedModel
from llmd.server.models.model_table import ModelTable

KEEP_ALIVE_FLAG = "--keep-alive"
"""Kept models stay loaded, unless this flag or their own table sets a keep-alive."""


class KeptModels:
    """The models that ``llmd serve`` or the setting ``load`` names. Use on the event loop only."""

    def __init__(self, table: ModelTable, settings: Callable[[], Settings]) -> None:
        """``settings`` returns the current ones."""
        self._table = table
        self._settings = settings
        self._served_names: dict[str, str] = {}

    async def begin(self, names: Sequence[str]) -> list[AnsweringModel]:
        """Begin to load the models that were not named before, and return them.

        Those that are no longer named follow their keep-alive again.

        Raises:
            NotFoundError: there is no such model.
        """
        new = {
            name: await self._table.resolve(name, allow_path=True)
            for name in names
            if name not in self._served_names
        }
        for model in new.values():
            if not self._says_how_long({model.name, _served_name(model)}):
                model.leases.pin()
        stay = {name: served for name, served in self._served_names.items() if name in names}
        gone = set(self._served_names.values())
        self._served_names = stay | {name: _served_name(model) for name, model in new.items()}
        self._release(gone.difference(self._served_names.values()))
        return list(new.values())

    def _release(self, names: set[str]) -> None:
        for model in self._table.served:
            if model.name in names:
                model.leases.unpin()

    def _says_how_long(self, names: set[str]) -> bool:
        """Whether the user has set how long a kept model stays loaded, which has these names."""
        key, settings = "server.keep_alive", self._settings()
        by_flag = settings.origins[key].source == KEEP_ALIVE_FLAG
        return by_flag or any(key in settings.models.get(name, {}) for name in names)


def _served_name(model: AnsweringModel) -> str:
    return model.base.name if isinstance(model, DerivedServedModel) else model.name
