"""Places a model on devices, and again when a device is lost or runs out of memory."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack

import msgspec

from llmd.api.byte_size import format_bytes
from llmd.api.device import HOST_MEMORY, Device, LoadedWeights, SpillingDevice
from llmd.api.errors import DeviceLostError, DeviceMemoryError, LlmdError, MemoryBudgetError
from llmd.api.machine import total_bytes
from llmd.api.messages import Load, MemoryReport, StageReport
from llmd.api.out_of_memory import memory_errors
from llmd.engine.placement.memory_use import least_by_memory
from llmd.engine.placement.memory_watch import WARN_SHARE, MemoryState
from llmd.engine.placement.placement import PlacedStage, Placement
from llmd.engine.placement.stages import StageParts

log = logging.getLogger(__name__)

MAX_HALVINGS = 3
"""How often the KV pool is halved. A device that still runs out of memory has another problem."""

Have = Mapping[str, Sequence[LoadedWeights]]
"""Weights by device, for `Device.load`."""

Replan = Callable[
    [Sequence[StageParts], Collection[str], Mapping[str, int]], Iterator[tuple[StageParts, ...]]
]
"""Returns the stages to try, best first, given the present stages, the lost devices, and the bytes that the
model may take of each memory whose devices are open."""

LoadWeights = Callable[[Sequence[StageParts], Mapping[str, Device], Have, ExitStack], Sequence[PlacedStage]]
"""Loads the weights of stages on open devices; the stack closes them."""

BuildStages = Callable[[Load, Sequence[PlacedStage], ExitStack], Placement]
"""Sizes the KV pools and creates the stages; the stack closes them."""


class Placer:
    """Owns the devices, weights and stages of one model. Used by the engine's loop thread only.

    When devices are lost, the model moves to those that are left. Devices that are lost meanwhile are not
    tried again.
    """

    def __init__(
        self,
        load: Load,
        stages: Sequence[StageParts],
        open_device: Callable[[str], Device],
        load_weights: LoadWeights,
        build_stages: BuildStages,
        replan: Replan,
    ) -> None:
        self.notices: list[str] = []
        self._load = load
        self._specs = tuple(stages)
        self._open_device = open_device
        self._load_weights = load_weights
        self._build_stages = build_stages
        self._replan = replan
        self._devices: dict[str, Device] = {}
        self._lost: dict[str, Device] = {}
        self._placed: Sequence[PlacedStage] = ()
        self._weights = ExitStack()
        self._stages = ExitStack()
        self._budget_bytes = 0
        self._halvings = 0
        self._free_at_open: dict[str, int] = {}

    def place(self) -> Placement:
        """Place the model as planned, or without the devices that are lost meanwhile.

        Raises:
            LlmdError: the model, a device or the memory does not allow it.
        """
        self._specs = self._opened(self._specs)
        try:
            return self._place(self._specs)
        except DeviceLostError as error:
            return self._move(error)

    def recover(self, error: DeviceLostError | DeviceMemoryError) -> Placement:
        """Return another placement after a step has failed; the earlier one is closed.

        Raises:
            LlmdError: no other placement is possible; the message has the reasons.
        """
        log.warning("device_failed", extra={"reason": str(error)})
        self._stages.close()
        return self._shrink(error) if isinstance(error, DeviceMemoryError) else self._move(error)

    def relieve(self, memory_id: str) -> Placement:
        """Return another placement, which leaves more of a memory to others; the earlier one is closed.

        Parts move to other devices or are streamed, as a plan says; without one, the KV pool gets smaller.

        Raises:
            LlmdError: no other placement is possible; the message has the reasons.
        """
        size = self.memory_states()[memory_id].total_bytes
        self._stages.close()
        free = self._free_bytes()
        most = free[memory_id] = max(0, free[memory_id] - round((1.0 - WARN_SHARE) * size))
        before = self._load
        owners = [name for name, one in self._devices.items() if one.info.memory_id == memory_id]
        self._load = before.within(dict.fromkeys(owners, most))
        for specs in self._replan(self._specs, (), free):
            names = " and ".join(dict.fromkeys(spec.device for spec in specs))
            log.warning("memory_full", extra={"memory": memory_id, "moves_to": names})
            self.notices.append(
                f"other programs filled the memory of a device: the model runs on {names} now"
            )
            try:
                return self._build(self._placed) if specs == self._specs else self._place(self._opened(specs))
            except DeviceLostError as error:
                return self._move(error)
            except LlmdError as refusal:
                log.warning("placement_failed", extra={"reason": str(refusal)})
                self.notices.pop()
        self._load = before
        return self._with_half_a_pool("other programs filled the memory of a device")

    def memory_states(self) -> dict[str, MemoryState]:
        """Return the memories of the open devices."""
        free = least_by_memory((one.info.memory_id, one.free_bytes()) for one in self._devices.values())
        sizes = {one.info.memory_id: one.info.memory_bytes for one in self._devices.values()}
        if HOST_MEMORY in sizes:
            sizes[HOST_MEMORY] = total_bytes()
        spilled: dict[str, int] = {}
        for one in self._devices.values():
            if isinstance(one, SpillingDevice):
                spilled[one.info.memory_id] = spilled.get(one.info.memory_id, 0) + one.spilled_bytes()
        return {
            name: MemoryState(num_bytes, sizes[name], spilled.get(name, 0))
            for name, num_bytes in free.items()
        }

    def memory_reports(self, stages: Sequence[StageReport]) -> tuple[MemoryReport, ...]:
        """Return what each memory of a card has less since its device was opened; ``stages`` are in use."""
        free = least_by_memory((one.info.memory_id, one.free_bytes()) for one in self._devices.values())
        return tuple(
            MemoryReport(
                tuple(dict.fromkeys(stage.device for stage in stages if stage.memory_id == memory_id)),
                sum(stage.size_bytes for stage in stages if stage.memory_id == memory_id),
                self._free_at_open[memory_id] - free[memory_id],
            )
            for memory_id in dict.fromkeys(stage.memory_id for stage in stages)
            if memory_id != HOST_MEMORY
        )

    def close(self) -> None:
        """Close stages, weights and devices."""
        self._stages.close()
        self._drop_weights()
        for device in self._devices.values():
            device.close()
        self._devices.clear()

    def _move(self, error: DeviceLostError) -> Placement:
        """Place the model on the devices that are left."""
        self._lose(error)
        reasons = []
        for specs in self._replan(self._specs, self._lost, self._free_bytes()):
            names = " and ".join(dict.fromkeys(spec.device for spec in specs))
            try:
                placement = self._place(self._opened(specs))
            except DeviceLostError as also:
                return self._move(also)
            except LlmdError as refusal:
                reasons.append(f"{names}: {refusal.message}")
            else:
                self.notices.append(
                    f"devices were lost ({', '.join(self._lost)}): the model runs on {names} instead"
                )
                return placement
        raise DeviceLostError(
            f"lost ({error.message}); no other device can run its part of the model"
            f" ({'; '.join(reasons) or 'none is left'})",
            devices=tuple(self._lost),
            hint="see the log for the cause; load the model again once the device works, or choose another",
        ) from error

    def _free_bytes(self) -> dict[str, int]:
        """Return the bytes of each memory that are free, or taken by weights that would be replaced."""
        free = least_by_memory(
            (device.info.memory_id, device.free_bytes()) for device in self._devices.values()
        )
        for one in self._placed:
            if one.use.memory_id in free:
                free[one.use.memory_id] += one.use.weight_bytes
        return free

    def _shrink(self, error: DeviceMemoryError) -> Placement:
        """Halve the KV pool."""
        if self._halvings == MAX_HALVINGS:
            raise error
        self._halvings += 1
        return self._with_half_a_pool("a device ran out of memory")

    def _with_half_a_pool(self, why: str) -> Placement:
        kv_memory = self._budget_bytes // 2
        self._load = msgspec.structs.replace(self._load, kv_memory=kv_memory)
        self.notices.append(f"{why}, so the KV pool was reduced to {format_bytes(kv_memory)}")
        try:
            return self._build(self._placed)
        except DeviceLostError as lost:
            return self._move(lost)

    def _lose(self, error: DeviceLostError) -> None:
        lost = self._devices.keys() & error.devices
        if not lost:
            raise error  # of a device that has no part of the model
        for name in lost:
            self._lost[name] = self._devices.pop(name)

    def _place(self, specs: tuple[StageParts, ...]) -> Placement:
        with ExitStack() as weights, memory_errors():
            placed = self._loaded(specs, weights)
            self._drop_weights()
            placement = self._build(placed)
            self._weights = weights.pop_all()
        self._specs, self._placed = specs, placed
        return placement

    def _loaded(self, specs: Sequence[StageParts], weights: ExitStack) -> Sequence[PlacedStage]:
        """Load the weights. If they do not fit together with the earlier ones, those are closed first."""
        have = defaultdict(list)
        for one in self._placed:
            have[one.spec.device].append(one.weights)
        try:
            return self._load_weights(specs, self._devices, have, weights)
        except MemoryBudgetError:
            if not have:
                raise
        weights.close()
        self._drop_weights()
        return self._load_weights(specs, self._devices, {}, weights)

    def _build(self, placed: Sequence[PlacedStage]) -> Placement:
        with ExitStack() as stages:
            placement = self._build_stages(self._load, placed, stages)
            self._stages = stages.pop_all()
        self._budget_bytes = placement.budget.total_bytes
        return placement

    def _drop_weights(self) -> None:
        """Close the earlier weights, and then the lost devices that they are on."""
        self._weights.close()
        self._placed = ()
        for device in self._lost.values():
            device.close()

    def _opened(self, specs: Sequence[StageParts]) -> tuple[StageParts, ...]:
        """Open the devices of stages; return the stages with the names that the devices have."""
        return tuple(msgspec.structs.replace(spec, device=self._open(spec.device)) for spec in specs)

    def _open(self, name: str) -> str:
        if name in self._devices:
            return name
        device = self._open_device(name)
        if self._devices.setdefault(device.info.name, device) is not device:
            device.close()  # ``auto`` is a device that is open already
        self._free_at_open.setdefault(device.info.memory_id, device.free_bytes())
        return device.info.name
