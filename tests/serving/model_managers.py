"""Models without engines, in a table that loads and unloads them as the daemon's does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from llmd.api import HOST_MEMORY
from llmd.api.errors import LlmdError
from llmd.api.messages import Load
from llmd.engine.placement.candidates import Room
from llmd.engine.placement.estimate import Estimate
from llmd.engine.placement.memory_need import MemoryNeed
from llmd.server.engines.supervisor import Admit
from llmd.server.errors import UnavailableError
from llmd.server.models.derived_model import AnsweringModel
from llmd.server.models.memory_budget import MemoryBudget
from llmd.server.models.model_leases import ModelLeases, TimerHandle
from llmd.server.models.model_manager import Loader, ModelManager
from llmd.server.models.served_model import ServedModel
from llmd.server.tasks import unless

KEEP_ALIVE_S = 300.0


class BareModel:
    """A model that has no engine. It is admitted as an engine is, and loaded once the test says so.

    ``granted`` is what it may take of each device; ``closed`` holds the errors that it was closed with,
    ``spooled`` whether it may keep its cache, ``hurried`` whether it was to end at once.
    """

    def __init__(
        self, name: str, directory: Path, leases: ModelLeases, admit: Admit, *, loads_at_once: bool = True
    ) -> None:
        self.name = name
        self.directory = directory
        self.leases = leases
        self.in_use = leases.use
        self.never_loaded = False
        self.granted: Mapping[str, int] | None = None
        self.sizes: Mapping[str, int] = {}
        self.loaded: object | None = None
        self.closed: list[Any] = []
        self.spooled = False
        self.hurried = False
        self.finish_closing = asyncio.Event()
        self.finish_closing.set()
        self._admit = admit
        self._load = asyncio.Event()
        self._closing = asyncio.Event()
        if loads_at_once:
            self._load.set()

    def finish_loading(self) -> None:
        self._load.set()

    async def ready(self) -> None:
        """Admission and loading; raises what they end with."""
        self.granted = await unless(self._closing, self._admitted(), "admission")
        await unless(self._closing, self._load.wait(), "loading")
        if self._closing.is_set():
            raise UnavailableError(f"{self.name} was unloaded", code="model_unloaded")
        self.loaded = self

    async def _admitted(self) -> Mapping[str, int]:
        options = (await self._admit(Load(str(self.directory)))).device_options
        return {device: one.memory_bytes for device, one in options.items() if one.memory_bytes is not None}

    def close_now(self) -> None:
        self.hurried = True

    async def close(self, error: LlmdError | None = None, *, spool: bool = False) -> None:
        self.closed.append(error)
        self.spooled = spool
        self._closing.set()
        await self.finish_closing.wait()
        await asyncio.sleep(0)


def bare_model(name: str, directory: Path, leases: ModelLeases, admit: Admit) -> ServedModel:
    """A model that loads at once."""
    return cast("ServedModel", BareModel(name, directory, leases, admit))


def bare(model: AnsweringModel) -> BareModel:
    """The model as the test sees it."""
    return cast("BareModel", model)


class Timers:
    """Timers that ring when the test says how much time has gone by."""

    class One(Struct):
        due_s: float
        call: Callable[[], None]
        cancelled: bool = False

        def cancel(self) -> None:
            self.cancelled = True

    def __init__(self) -> None:
        self.now_s = 0.0
        self._set: list[Timers.One] = []

    def __call__(self, delay_s: float, call: Callable[[], None]) -> TimerHandle:
        self._set.append(one := Timers.One(self.now_s + delay_s, call))
        return one

    def clock(self) -> float:
        return self.now_s

    def go_on(self, seconds: float) -> None:
        """Let time go by; what is due rings."""
        self.now_s += seconds
        for one in [one for one in self._set if one.due_s <= self.now_s]:
            self._set.remove(one)
            if not one.cancelled:
                one.call()


def residents_of(
    load: Loader = bare_model,
    *,
    limit_bytes: int | None = None,
    available: int = 1 << 40,
    need: Callable[[Path], MemoryNeed | Mapping[str, MemoryNeed]] = lambda _directory: MemoryNeed(0, 0, 0),
    keep_alive_s: float = KEEP_ALIVE_S,
    timers: Timers | None = None,
    wait_s: float = 60.0,
    rooms: list[Room] | None = None,
) -> ModelManager:
    """A set of loaded models over models without engines. A single ``need`` is one of main memory; ``rooms``
    gets what each model may take.
    """

    async def measure(load: Load, room: Room) -> Estimate:
        await asyncio.sleep(0)
        if rooms is not None:
            rooms.append(room)
        needed = need(Path(load.directory))
        return Estimate(load, {HOST_MEMORY: needed} if isinstance(needed, MemoryNeed) else needed)

    timers = timers or Timers()
    return ModelManager(
        load,
        measure,
        MemoryBudget(limit_bytes, lambda: available),
        keep_alive_s=lambda _name: keep_alive_s,
        timer=timers,
        clock=timers.clock,
        wait_s=wait_s,
    )
