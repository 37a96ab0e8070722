"""A derived model as requests see it: its base's engine with another prompt and other settings."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from msgspec import Struct, structs

from llmd.chat.derived_text import derived_text
from llmd.chat.model_text import ModelText
from llmd.registry.derived import DerivedModel
from llmd.server.engines.supervisor import Supervisor
from llmd.server.models.adapter_model import AdapterModel
from llmd.server.models.model_leases import ModelLeases
from llmd.server.models.served_model import ReadyModel, ServedModel


class DerivedServedModel(Struct, frozen=True):
    """A derived model. Its base may serve requests under other names at the same time."""

    name: str
    record: DerivedModel
    base: ServedModel
    keep_alive_s: float | None = None
    """The keep-alive of the settings for its name; None: that of its base."""

    @property
    def directory(self) -> Path:
        return self.base.directory

    @property
    def supervisor(self) -> Supervisor:
        return self.base.supervisor

    @property
    def leases(self) -> ModelLeases:
        return self.base.leases

    def in_use(self, keep_alive_s: float | None = None) -> AbstractContextManager[None]:
        """Hold the base model for a request."""
        if self.keep_alive_s is None:
            return self.base.in_use(keep_alive_s)
        return self.base.leases.use(keep_alive_s, own_default_s=self.keep_alive_s)

    async def text(self) -> ModelText:
        """Wait until prompts can be tokenized.

        Raises:
            LlmdError: the base's tokenizer or template files cannot be used.
        """
        return derived_text(await self.base.text(), self.record)

    async def ready(self) -> ReadyModel:
        """Wait until the base model can answer.

        Raises:
            LlmdError: it cannot be loaded, or has failed for good.
        """
        ready = await self.base.ready()
        adapter = self.name if isinstance(self.record, AdapterModel) else ""
        return structs.replace(ready, text=derived_text(ready.text, self.record), adapter=adapter)


AnsweringModel = ServedModel | DerivedServedModel
"""A model that a request can name."""
