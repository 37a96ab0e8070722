"""A model that the daemon serves: its engine, and its tokenizer and chat template."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from contextlib import AbstractContextManager
from pathlib import Path

from msgspec import Struct

from llmd.api.device import HOST_MEMORY
from llmd.api.errors import LlmdError
from llmd.api.messages import Loaded, Loading
from llmd.chat.model_text import ModelText
from llmd.chat.tokenizers.tokenizer import check_vocab_size
from llmd.registry.locks import FileLock
from llmd.server.engines.supervision import Phase
from llmd.server.engines.supervisor import Supervisor
from llmd.server.models.model_leases import ModelLeases


class ReadyModel(Struct, frozen=True):
    """The parts of a loaded model that requests use.

    ``window`` is the maximum number of tokens of prompt and answer together.
    """

    supervisor: Supervisor
    text: ModelText
    loaded: Loaded
    adapter: str = ""
    """Name of the adapter that answers; empty: none."""

    @property
    def window(self) -> int:
        return self.loaded.window


class ServedModel:
    """A named model. It starts to load when it is created. Await `close` in the end."""

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
        """Hold the model for a request, so that it is not unloaded. ``keep_alive_s`` applies afterwards."""
        return self.leases.use(keep_alive_s, own_default_s=self.leases.default_s)

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
        """Wait until prompts can be tokenized; the engine may still be loading.

        Raises:
            LlmdError: its tokenizer or template files cannot be used.
        """
        # Shielded: a client that disconnects while the model loads must not cancel the load for others.
        return await asyncio.shield(self._text)

    @property
    def error(self) -> LlmdError | None:
        """Why it cannot answer; None if it can."""
        failed = self._text.done() and not self._text.cancelled() and self._text.exception()
        if isinstance(failed, LlmdError):
            return failed
        return self.supervisor.error

    @property
    def loaded(self) -> Loaded | None:
        return self.supervisor.known

    @property
    def progress(self) -> Loading | None:
        """How far its first load is; None once it is loaded, and until the engine says."""
        return self.supervisor.progress if self.loaded is None else None

    @property
    def size_bytes(self) -> int:
        """Bytes of weights, KV pools and step buffers; 0 until it is loaded."""
        return sum(self.sizes.values())

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes as in `size_bytes` by memory (`llmd.api.DeviceInfo.memory_id`)."""
        sizes: defaultdict[str, int] = defaultdict(int)
        for stage in self.loaded.stages if self.loaded else ():
            sizes[stage.memory_id] += stage.size_bytes
            if host_bytes := stage.streamed_bytes + stage.main_memory_expert_bytes:
                sizes[HOST_MEMORY] += host_bytes
        return dict(sizes)

    @property
    def never_loaded(self) -> bool:
        """Whether loading failed, so that a retry may succeed once its files are fixed."""
        return self.error is not None and (self.loaded is None or self.supervisor.error is None)

    @property
    def status(self) -> str:
        """``loading``, ``loaded`` or ``failed``."""
        if self.error is not None:
            return "failed"
        ready = self.supervisor.phase is Phase.READY and self._text.done()
        return "loaded" if ready else "loading"

    def close_now(self) -> None:
        """Make `close` return sooner: the engine stops writing its cache."""
        self.supervisor.close_now()

    async def close(self, error: LlmdError | None = None, *, spool: bool = False) -> None:
        """End the engine, and live requests with ``error``. ``spool``: it writes its cache to disk first."""
        await self.supervisor.close(error, spool=spool)
        await asyncio.wait({self._text})
        if self._lease is not None:
            self._lease.close()


def _retrieve(text: asyncio.Future[ModelText]) -> None:
    """Retrieve the exception, so that asyncio does not report it as never retrieved."""
    if not text.cancelled():
        text.exception()
