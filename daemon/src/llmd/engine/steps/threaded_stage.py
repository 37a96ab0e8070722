"""A stage on a thread of its own, for devices that compute in `Stage.submit`."""

from __future__ import annotations

import itertools
import queue
from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.device import HiddenRef, HostHidden, Stage
from llmd.api.errors import DeviceError, DeviceLostError
from llmd.api.spans import Span, Stopwatch
from llmd.api.step import Float32, Int32, LateEdits, Selection, Step, StepResult, Ticket
from llmd.engine.steps.step_limit import LEAST_S

Masks = NDArray[np.uint32]


class _Done(msgspec.Struct, frozen=True):
    """What a step has returned; the arrays belong to the inner ticket."""

    ticket: Ticket
    hidden: HiddenRef | None
    result: StepResult | None
    spans: Sequence[Span] = ()


class _Flight(msgspec.Struct, frozen=True):
    done: Future[_Done]
    hidden: HiddenRef | None
    """Its input."""
    released: Future[Any]
    late: queue.SimpleQueue[LateEdits | Masks | None]
    """Edits and masks, in this order; None ends a step that was released before it had them."""


class _PendingHidden(msgspec.Struct, frozen=True):
    """Hidden states of a step that may still be running."""

    done: Future[_Done]
    device: str
    before: HiddenRef | None
    """The input of the step."""

    def host(self) -> Float32:
        """Wait for the step and return its hidden states; may be called from any thread."""
        hidden = self.done.result().hidden
        assert hidden is not None, "a stage with the head has no hidden states"
        return hidden.host()


class ThreadedStage:
    """Queues the steps of another stage, so that several stages work at the same time. See `llmd.api.Stage`.

    The other stage is used by the thread of ``executor`` only, which has one thread for each device.
    A step that fails raises its error in `wait`, also if it did not obey the contract.
    """

    def __init__(
        self, stage: Stage, executor: ThreadPoolExecutor, device: str, *, spans: bool = False
    ) -> None:
        """``device`` is the name of the stage's device, ``spans`` its `StageLimits.spans`: without
        them, `spans` says when the thread worked on a step.
        """
        self._stage = stage
        self._device = device
        self._keeps_spans = spans
        self._executor = executor
        self._tickets = itertools.count()
        self._flights: dict[Ticket, _Flight] = {}
        self._released: deque[Future[_Done]] = deque()

    def submit(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> Ticket:
        ticket, late = Ticket(next(self._tickets)), queue.SimpleQueue[LateEdits | Masks | None]()
        released: Future[Any] = Future()
        done = self._executor.submit(self._run, step, hidden, selection, late, released)
        self._flights[ticket] = _Flight(done, hidden, released, late)
        return ticket

    def apply_edits(self, ticket: Ticket, edits: LateEdits) -> None:
        self._flights[ticket].late.put(edits)

    def apply_masks(self, ticket: Ticket, masks: Masks) -> None:
        self._flights[ticket].late.put(masks)

    def hidden(self, ticket: Ticket) -> HiddenRef:
        flight = self._flights[ticket]
        return _PendingHidden(flight.done, self._device, flight.hidden)

    def tap(self, ticket: Ticket, part: int) -> HiddenRef:
        inner = self._flights[ticket].done.result().ticket
        return self._executor.submit(self._stage.tap, inner, part).result()

    def wait(self, ticket: Ticket, timeout_s: float) -> StepResult:
        flight = self._flights[ticket]
        try:
            result = flight.done.result(timeout_s).result
        except TimeoutError:
            self.release(ticket)
            raise DeviceLostError(
                f"the step did not finish within {timeout_s:g} s",
                devices=(_hanging(self._device, flight.hidden),),
                hint="see the log of the device's driver",
            ) from None
        except DeviceError:
            self.release(ticket)
            raise
        assert result is not None, "only a stage with the head has a result"
        return result

    def rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        inner = self._flights[ticket].done.result().ticket
        return self._executor.submit(self._stage.rows, inner, outputs).result()

    def raw_rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        inner = self._flights[ticket].done.result().ticket
        return self._executor.submit(self._stage.raw_rows, inner, outputs).result()

    def spans(self, ticket: Ticket) -> Sequence[Span]:
        return self._flights[ticket].done.result().spans

    def release(self, ticket: Ticket) -> None:
        # The thread that runs the next step also releases: this one must not wait for a step.
        flight = self._flights.pop(ticket)
        flight.late.put(None)
        flight.released.set_result(None)
        self._released.append(flight.done)

    def read_blocks(self, group: int, blocks: Int32) -> NDArray[np.uint8]:
        return self._executor.submit(self._stage.read_blocks, group, blocks).result()

    def write_blocks(self, group: int, blocks: Int32, contents: NDArray[np.uint8]) -> None:
        self._executor.submit(self._stage.write_blocks, group, blocks, contents).result()

    def close(self) -> None:
        for ticket in list(self._flights):
            self.release(ticket)
        closed = self._executor.submit(self._stage.close)
        with suppress(TimeoutError):  # the thread of a device that hangs never gets to it
            closed.result(LEAST_S)

    def _run(
        self,
        step: Step,
        hidden: HiddenRef | None,
        selection: Selection | None,
        late: queue.SimpleQueue[LateEdits | Masks | None],
        released: Future[Any],
    ) -> _Done:
        self._release()
        if isinstance(hidden, _PendingHidden):
            wait([hidden.done, released], return_when=FIRST_COMPLETED)
            if not hidden.done.done():
                raise ValueError("the step was released before it had its input")
        if hidden is not None:
            hidden = HostHidden(hidden.host())
        watch = Stopwatch(is_on=not self._keeps_spans)
        ticket = self._stage.submit(step, hidden, selection)
        watch.stop("device", "layers")
        try:
            if selection is None:
                return _Done(ticket, self._stage.hidden(ticket), None, self._spans(ticket, watch))
            if selection.late is not None and selection.late.any():
                self._apply(ticket, late.get())
            if selection.masked.any():
                self._apply(ticket, late.get())
            watch.start()
            result = self._stage.wait(ticket, float("inf"))
            watch.stop("device", "results")
            return _Done(ticket, None, result, self._spans(ticket, watch))
        except ValueError:
            self._stage.release(ticket)
            raise

    def _spans(self, ticket: Ticket, watch: Stopwatch) -> Sequence[Span]:
        return self._stage.spans(ticket) if self._keeps_spans else watch.spans

    def _apply(self, ticket: Ticket, late: LateEdits | Masks | None) -> None:
        if late is None:
            raise ValueError("the step was released before it had its edits and masks")
        if isinstance(late, LateEdits):
            self._stage.apply_edits(ticket, late)
        else:
            self._stage.apply_masks(ticket, late)

    def _release(self) -> None:
        """Release the inner tickets of the steps that are released and done. Steps that failed have none."""
        while self._released and self._released[0].done():
            done = self._released.popleft()
            if done.exception() is None:
                self._stage.release(done.result().ticket)


def _hanging(device: str, hidden: HiddenRef | None) -> str:
    """Return the device that a step waits for: ``device``, or an earlier one whose part is not done."""
    while isinstance(hidden, _PendingHidden) and not hidden.done.done():
        device, hidden = hidden.device, hidden.before
    return device
