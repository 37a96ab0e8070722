"""Loads and unloads models within the memory budget."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path

from llmd.api.byte_size import format_bytes
from llmd.api.device import HOST_MEMORY
from llmd.api.errors import LlmdError, MemoryBudgetError
from llmd.api.messages import Load
from llmd.engine.placement.candidates import Room
from llmd.engine.placement.estimate import Estimate
from llmd.engine.placement.memory_need import MemoryNeed
from llmd.engine.placement.memory_use import in_memory
from llmd.server.engines.supervisor import Admit
from llmd.server.errors import UnavailableError
from llmd.server.models.eviction import (
    Decision,
    Fits,
    ModelFootprint,
    NeverFits,
    Sizes,
    Unload,
    Wait,
    decide,
)
from llmd.server.models.memory_budget import MemoryBudget
from llmd.server.models.model_leases import Clock, ModelLeases, Timer, loop_timer
from llmd.server.models.served_model import ServedModel
from llmd.server.tasks import OwnedTask

logger = logging.getLogger(__name__)

WAIT_S = 60.0
"""How long a model waits for busy models before its requests are refused."""

Loader = Callable[[str, Path, ModelLeases, Admit], ServedModel]
Measure = Callable[[Load, Room], Awaitable[Estimate]]
"""Chooses the devices of a load, within the given room, and returns what it needs there."""


class ModelManager:
    """The models that are loaded, loading or being unloaded. Use on the event loop only; await `close`."""

    def __init__(
        self,
        load: Loader,
        measure: Measure,
        memory: MemoryBudget,
        *,
        keep_alive_s: Callable[[str], float],
        timer: Timer = loop_timer,
        clock: Clock = time.monotonic,
        wait_s: float = WAIT_S,
    ) -> None:
        """``memory`` is the budget of main memory; devices with a memory of their own state its size."""
        self._load = load
        self._measure = measure
        self._memory = memory
        self._keep_alive_s = keep_alive_s
        self._timer = timer
        self._clock = clock
        self._wait_s = wait_s
        self._served: dict[str, ServedModel] = {}
        self._promised: dict[ServedModel, Sizes] = {}
        self._leaving: dict[ServedModel, OwnedTask] = {}
        self._loading: dict[ServedModel, OwnedTask] = {}
        self._changed = asyncio.Event()

    @property
    def served(self) -> dict[str, ServedModel]:
        """Every model that accepts requests, by name."""
        return dict(self._served)

    def update_keep_alive(self) -> None:
        """Apply changed settings to the models that are loaded."""
        for name, model in self._served.items():
            model.leases.set_default(self._keep_alive_s(name))

    async def serve(self, name: str, directory: Path, *, retry: bool = False) -> ServedModel:
        """Return the model of a name. Start to load it if needed, also if an earlier load has failed.

        ``retry``: also start a model again whose engine died repeatedly.
        """
        served = self._served.get(name)
        pinned = served is not None and served.leases.pinned
        if served is not None and (served.never_loaded or (retry and served.error is not None)):
            await self.unload(name)
        # Looked up again: while this request waited, another one may have started the load.
        if name not in self._served:
            self._served[name] = self._begin(name, directory)
            if pinned:
                self._served[name].leases.pin()
        return self._served[name]

    async def unload(self, name: str, error: LlmdError | None = None) -> None:
        """End a model's engine and wait until its memory is free."""
        await self._retire(self._served[name], error).join()

    async def close(self, error: LlmdError) -> None:
        """End every engine."""
        for model in self._leaving:
            model.close_now()
        leaving = [self._retire(model, error) for model in tuple(self._served.values())]
        await asyncio.gather(*(task.join() for task in [*leaving, *self._leaving.values()]))

    def _begin(self, name: str, directory: Path) -> ServedModel:
        leases = ModelLeases(
            self._keep_alive_s(name),
            lambda: self._expire(model),
            on_idle=self._changed.set,
            timer=self._timer,
            clock=self._clock,
        )
        model = self._load(name, directory, leases, lambda load: self._admit(model, load))
        self._loading[model] = OwnedTask(self._loaded(model), f"loading of {name}")
        return model

    async def _loaded(self, model: ServedModel) -> None:
        """Hold the model while it loads: its keep-alive starts afterwards, even if the client has gone."""
        try:
            with model.leases.use():
                await model.ready()
        except LlmdError as error:  # the requests that wait for it get the error, too
            logger.warning("model_not_loaded", extra={"model": model.name, "reason": str(error)})
        finally:
            self._promised.pop(model, None)
            self._loading.pop(model, None)
            self._changed.set()

    def _expire(self, model: ServedModel) -> None:
        logger.info("model_expired", extra={"model": model.name})
        self._retire(model, spool=True)

    def _retire(
        self, model: ServedModel, error: LlmdError | None = None, *, spool: bool = False
    ) -> OwnedTask:
        """Accept no more requests for a model and end its engine in the background."""
        if self._served.get(model.name) is model:
            del self._served[model.name]
        if model not in self._leaving:
            leave = self._leave(model, error, spool=spool)
            self._leaving[model] = OwnedTask(leave, f"unloading of {model.name}")
        return self._leaving[model]

    async def _leave(self, model: ServedModel, error: LlmdError | None, *, spool: bool) -> None:
        model.leases.end()
        try:
            await model.close(error, spool=spool)
            if loading := self._loading.get(model):
                await loading.join()
        finally:
            del self._leaving[model]
            self._changed.set()

    async def _admit(self, model: ServedModel, load: Load) -> Load:
        """Choose the devices of a model and wait until it may be loaded. Return its load with these devices
        and with limits of their memory.

        Raises:
            MemoryBudgetError: it cannot fit; the message lists the sizes.
            UnavailableError: other models were busy for too long.
        """
        try:
            estimate = await self._measure(load, self._most_room(model))
        except LlmdError:  # the engine reports the error in more detail
            return load
        needs = estimate.needs
        left = await self._room(model, needs)
        promised, limits = {}, {}
        for memory_id, need in needs.items():
            promised[memory_id] = need.total_bytes
            if self._budget(memory_id, need).limit_bytes is not None:
                kv_bytes = min(need.kv_bytes + left[memory_id] // 2, need.most_kv_bytes)
                promised[memory_id] += kv_bytes - need.kv_bytes
                limits.update(dict.fromkeys(need.devices, promised[memory_id]))
        self._promised[model] = promised
        return estimate.load.within(limits)

    def _most_room(self, model: ServedModel) -> Room:
        """Return the bytes of each memory that a model may take if all models that may be are unloaded."""
        others = self._others(model)
        movable = _total((sizes for other, sizes in others.items() if not other.leases.pinned), HOST_MEMORY)
        host_bytes = movable + self._memory.free_bytes(
            _total(others.values(), HOST_MEMORY), _total(self._not_allocated(), HOST_MEMORY)
        )
        pinned = [sizes for other, sizes in others.items() if other.leases.pinned]

        def room(memory_id: str, memory_bytes: int) -> int:
            return host_bytes if memory_id == HOST_MEMORY else memory_bytes - _total(pinned, memory_id)

        return room

    def _budget(self, memory_id: str, need: MemoryNeed) -> MemoryBudget:
        if memory_id == HOST_MEMORY:
            return self._memory
        return MemoryBudget(need.limit_bytes, lambda: need.memory_bytes)

    async def _room(self, model: ServedModel, needs: Mapping[str, MemoryNeed]) -> Sizes:
        """Make room for the model; return the bytes that stay free in each memory after it is loaded."""
        deadline = asyncio.get_running_loop().time() + self._wait_s
        while True:
            self._changed.clear()
            decision = self._decide(model, needs)
            model.leases.waits_for = decision.names if isinstance(decision, Wait) else ()
            match decision:
                case Fits():
                    return decision.left
                case NeverFits():
                    raise _too_large(model.name, needs[decision.memory_id], decision)
                case Unload():
                    for name in decision.names:
                        logger.info("model_evicted", extra={"model": name, "in_favour_of": model.name})
                        self._retire(self._served[name])
                case Wait():
                    for leaving in self._leaving:
                        if leaving.name in decision.names:
                            leaving.close_now()
                    await self._wait(model, decision, deadline)

    def _decide(self, model: ServedModel, needs: Mapping[str, MemoryNeed]) -> Decision:
        others, promised = self._others(model), self._not_allocated()
        free = {
            memory_id: self._budget(memory_id, need).free_bytes(
                _total(others.values(), memory_id), _total(promised, memory_id)
            )
            for memory_id, need in needs.items()
        }
        wanted = {memory_id: need.total_bytes for memory_id, need in needs.items()}
        return decide(wanted, free, [self._footprint(other, sizes) for other, sizes in others.items()])

    def _others(self, model: ServedModel) -> dict[ServedModel, Sizes]:
        """Return the other models, and what they take or will take."""
        others = {other: self._sizes(other) for other in (*self._served.values(), *self._leaving)}
        others.pop(model, None)
        return others

    def _not_allocated(self) -> list[Sizes]:
        """Return what models that are loading will take."""
        return [sizes for other, sizes in self._promised.items() if other.loaded is None]

    def _footprint(self, model: ServedModel, sizes: Sizes) -> ModelFootprint:
        leases = model.leases
        return ModelFootprint(
            model.name,
            sizes,
            last_used=leases.last_used,
            busy=leases.users > 0,
            pinned=leases.pinned,
            leaving=model in self._leaving,
            kept_forever=leases.remaining_s is None,
        )

    def _sizes(self, model: ServedModel) -> Sizes:
        return self._promised.get(model, {}) if model.loaded is None else model.sizes

    async def _wait(self, model: ServedModel, decision: Wait, deadline: float) -> None:
        names = ", ".join(decision.names)
        left_s = deadline - asyncio.get_running_loop().time()
        if left_s <= 0 or not await _is_set_within(self._changed, left_s):
            raise UnavailableError(
                f"{model.name} does not fit into memory together with {names}, busy for {self._wait_s:.0f} s",
                code="model_busy",
                hint="retry later, or free memory with `llmd stop`",
                retry_after_s=max(1, round(self._wait_s)),
            )


async def _is_set_within(event: asyncio.Event, limit_s: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), limit_s)
    except TimeoutError:
        return False
    return True


def _total(sizes: Iterable[Sizes], memory_id: str) -> int:
    return sum(one.get(memory_id, 0) for one in sizes)


def _too_large(name: str, need: MemoryNeed, decision: NeverFits) -> MemoryBudgetError:
    pinned = f" (pinned: {', '.join(decision.pinned)})" if decision.pinned else ""
    on_host = decision.memory_id == HOST_MEMORY
    return MemoryBudgetError(
        f"{name} needs {format_bytes(need.total_bytes)}{in_memory(decision.memory_id)} "
        f"({format_bytes(need.weight_bytes)} of weights, "
        f"{format_bytes(need.kv_bytes)} of KV cache, {format_bytes(need.step_bytes)} of step buffers), "
        f"but at most {format_bytes(decision.most_bytes)} can be made available{pinned}",
        hint="quantise it with --quant q8 or q4, choose a smaller model, or "
        + ("raise --max-memory" if on_host else "move layers to another device with --split"),
    )
