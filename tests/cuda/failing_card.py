"""A simulated card whose calls fail from a planned one on, with an error of the driver."""

from __future__ import annotations

from collections.abc import Callable

from llmd.api.errors import DeviceLostError
from llmd_backend_cuda.card import Card
from llmd_backend_cuda.driver import DriverError
from llmd_backend_cuda.runtime import Event
from tests.cuda.host_cuda import HostCuda
from tests.cuda.simulated import SimulatedCard


class FailingCard(SimulatedCard):
    """Its errors are made from numbers of the driver as those of a card are.

    A failure of the whole card is one of all later calls, too; another one happens once.
    """

    def __init__(self, index: int = 0, *, deferred: bool = False) -> None:
        super().__init__(name=f"cuda:{index}", deferred=deferred)
        self._card = Card(index, HostCuda(), None)  # type: ignore[arg-type] # it launches nothing
        self._failing: tuple[int, str, int] | None = None

    @property
    def has_failed(self) -> bool:
        """Whether the failure that was planned has happened."""
        return self._failing is None

    def fail(self, status: int, call: str, after: int = 0) -> None:
        """Let a call that queues something (``queue``) or waits (``wait``) fail, after some others.
        The former are counted from the first graph on: by then the model is loaded.
        """
        self._failing = (status, call, after)

    def enqueue(self, call: Callable[[], None]) -> None:
        if self.num_graphs and not self.capturing:
            self.check("queue")
        super().enqueue(call)

    def record(self) -> Event:
        return _FailingEvent(self, super().record())

    def wait_for(self, event: Event) -> None:
        super().wait_for(event.event if isinstance(event, _FailingEvent) else event)

    def lost(self, what: str) -> DeviceLostError:
        return self._card.lost(what)

    def check(self, call: str) -> None:
        """Raise the error that was planned if it is time for it."""
        self._card.call(self._count, call)

    def _count(self, call: str) -> None:
        if self._failing is None or self._failing[1] != call:
            return
        status, _, after = self._failing
        self._failing = (status, call, after - 1) if after else None
        if not after:
            raise DriverError(status, "CUDA_ERROR_TEST: a test")


class _FailingEvent:
    def __init__(self, card: FailingCard, event: Event) -> None:
        self._card = card
        self.event = event

    def wait(self, timeout_s: float) -> bool:
        self._card.check("wait")
        return self.event.wait(timeout_s)
