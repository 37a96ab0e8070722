"""A model that the daemon serves: its engine and its text."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractContextManager
from pathlib import Path

from msgspec import Struct

from llmd.api.errors import LlmdError
from llmd.api.messages import Loaded
from llmd.chat.model_text import ModelText
from llmd.chat.tokenizers.tokenizer import check_vocab_size
from llmd.registry.locks import FileLock
from llmd.server.engines.supervision import Phase
from llmd.server.engines.supervisor import Supervisor
from llmd.server.models.model_leases import ModelLeases


class ReadyModel(Struct, frozen=True):
    """What a request needs of a loaded model. ``window``: how many tokens prompt and answer may have together."""

    supervisor: Supervisor
    text: ModelText
    loaded: Loaded

    @property
    def window(self) -> int:
        return self.loaded.window


class ServedModel:
    """A model by name. It loads from the moment it is made; whoever makes it awaits `close`."""

    def __init__(
        self,
        name: str,
        directory: Path,
        supervisor: Supervisor,
        text: asyncio.Future[ModelText],
        leases: ModelLeases,
        lease: FileLock | None = None,
    ) -> None:
        """``lease`` keeps its files from being removed."""
        self.name = name
        self.directory = directory
        self.supervisor = supervisor
        self.leases = leases
        self._lease = lease
        self.created = int(time.time())
        self._text = text
        self._text.add_done_callback(_retrieve)

    def in_use(self, keep_alive_s: float | None = None) -> AbstractContextManager[None]:
        """Hold it for a request: it is not unloaded meanwhile. ``keep_alive_s`` says how long it stays afterwards."""
        return self.leases.use(keep_alive_s)

    async def ready(self) -> ReadyModel:
        """Wait until it can answer.

        Raises:
            LlmdError: it cannot be loaded, or has failed for good.
        """
        text = await self.text()
        loaded = await self.supervisor.loaded()
        check_vocab_size(text.tokenizer, loaded.vocab_size)
        return ReadyModel(self.supervisor, text, loaded)

    async def text(self) -> ModelText:
        """Wait until prompts can be made tokens; the engine may still load.

        Raises:
            LlmdError: its text files cannot be used.
        """
        # Shielded: one client that leaves while the model loads must not end the loading for the others.
        return await asyncio.shield(self._text)

    @property
    def error(self) -> LlmdError | None:
        """Why it cannot answer, if it cannot."""
        failed = self._text.done() and not self._text.cancelled() and self._text.exception()
        if isinstance(failed, LlmdError):
            return failed
        return self.supervisor.error

    @property
    def loaded(self) -> Loaded | None:
        return self.supervisor.known

    @property
    def size_bytes(self) -> int:
        """Weights, KV pools and the rows of a step; 0 until it is loaded."""
        stages = self.loaded.stages if self.loaded else ()
        return sum(stage.size_bytes for stage in stages)

    @property
    def never_loaded(self) -> bool:
        """Whether loading failed, so that another try may find fixed files."""
        return self.error is not None and (self.loaded is None or self.supervisor.error is None)

    @property
    def status(self) -> str:
        """``loading``, ``loaded`` or ``failed``."""
        if self.error is not None:
            return "failed"
        ready = self.supervisor.phase is Phase.READY and self._text.done()
        return "loaded" if ready else "loading"

    def close_now(self) -> None:
        """End at once where it is being closed."""
        self.supervisor.close_now()

    async def close(self, error: LlmdError | None = None, *, spool: bool = False) -> None:
        """End the engine; running requests end with ``error``. ``spool``: it keeps its cache on disk before."""
        await self.supervisor.close(error, spool=spool)
        await asyncio.wait({self._text})
        if self._lease is not None:
            self._lease.close()


def _retrieve(text: asyncio.Future[ModelText]) -> None:
    """Take the failure that nobody may ask for, so that it is not reported as forgotten."""
    if not text.cancelled():
        text.exception()
