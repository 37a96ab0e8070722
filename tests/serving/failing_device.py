"""Reference devices that can be lost on command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from llmd.api import (
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    LoadedWeights,
    MemoryBudgetError,
    Program,
    Progress,
    Refusal,
    TensorSource,
)
from llmd.builtin.reference.device import ReferenceDevice, ReferenceWeights
from llmd.builtin.reference.stage import ReferenceStage

NOT_LOST = frozenset({"release", "close"})
"""These work on a lost device, too."""


class FailingDevice:
    """Computes like the reference device until a failure that was planned with `lose` or `exhaust`."""

    def __init__(self, name: str, *, has_room: bool = True) -> None:
        """Without room, weights do not fit."""
        self._whole = ReferenceDevice()
        self.info = msgspec.structs.replace(self._whole.info, name=name)
        self.has_room = has_room
        self.shares = True
        """Whether it has room for weights next to earlier ones, which it shares."""
        self.room: Callable[[], int] = self._whole.free_bytes
        """Returns the bytes that are free."""
        self.num_open = 0
        """Weights and stages that are not closed."""
        self.is_lost = False
        self.is_closed = False
        self.taken: list[int] = []
        """Number of `LoadedWeights` that each load was offered."""
        self._failing: tuple[str, int, bool] | None = None

    def lose(self, call: str, after: int = 0) -> None:
        """Lose the device in a call of the named method of device, weights or stage, after some others."""
        self._failing = (call, after, True)

    def exhaust(self, call: str, after: int = 0) -> None:
        """Let such a call raise `DeviceMemoryError`, once."""
        self._failing = (call, after, False)

    def check(self, program: Program) -> list[Refusal]:
        return self._whole.check(program)

    def read_rate(self, budget_s: float) -> float:
        return self._whole.read_rate(budget_s)

    def free_bytes(self) -> int:
        return self.room()

    def load(
        self,
        program: Program,
        tensors: TensorSource,
        progress: Progress,
        have: Sequence[LoadedWeights] = (),
    ) -> FailingWeights:
        self.check_failure("load")
        if not self.has_room or (have and not self.shares):
            raise MemoryBudgetError(f"the weights do not fit {self.info.name}")
        self.taken.append(len(have))
        wrapped = [one._whole for one in have if isinstance(one, FailingWeights)]
        return FailingWeights(self, self._whole.load(program, tensors, progress, wrapped))

    def close(self) -> None:
        self.is_closed = True

    def check_failure(self, call: str) -> None:
        if self.is_lost:
            raise self._lost()
        if self._failing is None or self._failing[0] != call:
            return
        _, after, loses = self._failing
        self._failing = (call, after - 1, loses) if after else None
        if not after and loses:
            self.is_lost = True
            raise self._lost()
        if not after:
            raise DeviceMemoryError(f"{self.info.name} has no room for the step")

    def _lost(self) -> DeviceError:
        return DeviceLostError("it does not answer", devices=(self.info.name,))


class _Wrapped:
    """Passes calls on to an object of the reference device, unless the device is lost."""

    def __init__(self, device: FailingDevice, whole: Any) -> None:
        self._device = device
        self._whole = whole
        self._is_open = True
        device.num_open += 1

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._whole, name)

        def call(*arguments: Any) -> Any:
            if name not in NOT_LOST:
                self._device.check_failure(name)
            return method(*arguments)

        return call

    def close(self) -> None:
        self._whole.close()
        self._device.num_open -= self._is_open
        self._is_open = False


class FailingWeights(_Wrapped):
    """See `llmd.api.LoadedWeights`."""

    _whole: ReferenceWeights

    def stage(self, *arguments: Any) -> FailingStage:
        self._device.check_failure("stage")
        return FailingStage(self._device, self._whole.stage(*arguments))


class FailingStage(_Wrapped):
    """See `llmd.api.Stage`."""

    _whole: ReferenceStage

    def wait(self, ticket: Any, timeout_s: float) -> Any:
        try:
            self._device.check_failure("wait")
        except DeviceError:
            self._whole.release(ticket)
            raise
        return self._whole.wait(ticket, timeout_s)
