"""The side of the device's process: does what requests ask of the device, its weights and its stages."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, cast

import msgspec
from numpy.typing import NDArray

from llmd.api.device import Device, HostHidden, LoadedWeights, SpillingDevice, Stage
from llmd.api.errors import DeviceError, LinkClosedError
from llmd.api.kernel_use import KernelUse, NamesKernels
from llmd.api.quantizer import Quantizes
from llmd.api.spans import Span
from llmd.api.step import StepResult, Ticket
from llmd.api.transport import Link
from llmd.models.weight_source import CheckpointSource
from llmd.remote.array_frames import ArrayFrame, ArrayFrameReader
from llmd.remote.errors import report_of
from llmd.remote.messages import (
    REPLIES,
    ApplyEdits,
    ApplyMasks,
    CheckProgram,
    CloseStage,
    CloseWeights,
    DeviceStatus,
    GetKVBytes,
    GetStatus,
    GetStepBytes,
    LoadWeights,
    MakeStage,
    OfStage,
    ReadBlocks,
    ReadHidden,
    ReadRate,
    ReadRows,
    ReadSpans,
    ReleaseTicket,
    Reply,
    Request,
    SubmitStep,
    WaitForStep,
    WriteBlocks,
)

log = logging.getLogger(__name__)

SEND_LIMIT_S = 60.0
"""How long the engine may leave replies unread. It waits for each."""
STATUS_S = 1.0
"""How often replies say the status of the device."""

Report = Callable[[int, int], None]


class ServedStage:
    """A stage, and its tickets by the numbers of the engine.

    A step that could not be submitted raises its error when its results are asked for.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tickets: dict[int, Ticket] = {}
        self._errors: dict[int, Exception] = {}

    def answer(self, request: OfStage) -> Any:
        """Do what a request asks; return its reply."""
        match request:
            case SubmitStep() | ApplyEdits() | ApplyMasks():
                try:
                    self._begin(request)
                except Exception as error:  # noqa: BLE001 - plugins may raise anything
                    self._errors[request.ticket] = error
            case ReleaseTicket(ticket=number):
                self._release(number)
            case CloseStage():
                self._stage.close()
            case WriteBlocks(group=group, blocks=blocks, contents=contents):
                self._stage.write_blocks(group, blocks, contents)
            case _:
                return self._read(request)
        return None

    def kernels(self) -> KernelUse | None:
        """Return the kernels that the stage uses; None if it does not name them."""
        return self._stage.kernels() if isinstance(self._stage, NamesKernels) else None

    def _read(
        self, request: WaitForStep | ReadHidden | ReadRows | ReadSpans | ReadBlocks
    ) -> StepResult | NDArray[Any] | tuple[Span, ...]:
        match request:
            case WaitForStep(ticket=number, timeout_s=timeout_s):
                ticket = self._ticket(number)
                try:
                    return self._stage.wait(ticket, timeout_s)
                except DeviceError:
                    self._tickets.pop(number, None)
                    raise
            case ReadHidden(ticket=number, tap=tap):
                ticket = self._ticket(number)
                hidden = self._stage.hidden(ticket) if tap is None else self._stage.tap(ticket, tap)
                return hidden.host()
            case ReadRows(ticket=number, outputs=outputs, raw=raw):
                read = self._stage.raw_rows if raw else self._stage.rows
                return read(self._ticket(number), outputs)
            case ReadSpans(ticket=number):
                return tuple(self._stage.spans(self._ticket(number)))
            case ReadBlocks(group=group, blocks=blocks):
                return self._stage.read_blocks(group, blocks)

    def _begin(self, request: SubmitStep | ApplyEdits | ApplyMasks) -> None:
        match request:
            case ApplyEdits(ticket=number, edits=edits):
                self._stage.apply_edits(self._ticket(number), edits)
            case ApplyMasks(ticket=number, masks=masks):
                self._stage.apply_masks(self._ticket(number), masks)
            case SubmitStep(ticket=number, step=step, hidden=hidden, selection=selection):
                if step.feed is not None:
                    step = msgspec.structs.replace(step, feed=self._ticket(step.feed))
                rows = None if hidden is None else HostHidden(hidden)
                self._tickets[number] = self._stage.submit(step, rows, selection)

    def _ticket(self, number: int) -> Ticket:
        """Return the stage's ticket; raise the error of its step, as `Stage.wait` does."""
        if error := self._errors.get(number):
            if isinstance(error, DeviceError):
                self._release(number)
            raise error
        if number not in self._tickets:
            raise ValueError(f"ticket {number} is not in flight")
        return self._tickets[number]

    def _release(self, number: int) -> None:
        """Release a ticket, if the stage has it."""
        self._errors.pop(number, None)
        ticket = self._tickets.pop(number, None)
        if ticket is not None:
            self._stage.release(ticket)


class DeviceServer:
    """Answers the requests for one device, in order."""

    def __init__(self, device: Device, link: Link) -> None:
        self._device = device
        self._link = link
        self._weights: dict[int, LoadedWeights] = {}
        self._stages: dict[int, ServedStage] = {}
        self._reader = ArrayFrameReader(cast("type[Request]", Request))
        self._told_at = float("-inf")

    def serve(self) -> None:
        """Answer until the engine closes the link."""
        send(self._link, Reply(self._device.info))
        try:
            while True:
                with self._link.receive(float("inf")) as data:
                    request = self._reader.read(data)
                self._handle(request)
        except LinkClosedError:
            return

    def _handle(self, request: Request) -> None:
        try:
            value = self._answer(request)
        except Exception as error:
            if type(request) not in REPLIES:
                log.exception("request_failed")
                return
            reply = Reply[Any](error=report_of(error))
        else:
            if type(request) not in REPLIES:
                return
            status = value if isinstance(value, DeviceStatus) else self._new_status()
            reply = Reply[Any](value, status=status)
        send(self._link, reply)

    def _answer(self, request: Request) -> Any:
        match request:
            case CheckProgram(program=program):
                return self._device.check(program)
            case ReadRate(budget_s=budget_s):
                return self._device.read_rate(budget_s)
            case GetStatus():
                return self._status()
            case LoadWeights() | GetKVBytes() | GetStepBytes() | MakeStage() | CloseWeights():
                return self._answer_of_weights(request)
            case CloseStage(stage=number):
                return self._stages.pop(number).answer(request)
            case _:
                return self._stages[request.stage].answer(request)

    def _answer_of_weights(
        self, request: LoadWeights | GetKVBytes | GetStepBytes | MakeStage | CloseWeights
    ) -> int | None:
        match request:
            case LoadWeights():
                self._load(request)
            case GetKVBytes(weights=number, group=group, kv_dtype=kv_dtype):
                return self._weights[number].kv_bytes(group, kv_dtype)
            case GetStepBytes(weights=number, limits=limits):
                return self._weights[number].step_bytes(limits)
            case MakeStage(weights=number, stage=stage, blocks=blocks, limits=limits):
                self._stages[stage] = ServedStage(self._weights[number].stage(blocks, limits))
                self._told_at = float("-inf")  # its kernels are new
            case CloseWeights(weights=number):
                self._weights.pop(number).close()
        return None

    def _load(self, request: LoadWeights) -> None:
        quantizer = self._device.quantizer if isinstance(self._device, Quantizes) else None
        source = request.source.make(quantizer)
        have = [self._weights[number] for number in request.have]
        self._weights[request.weights] = self._device.load(request.program, source, self._report, have)
        if isinstance(source, CheckpointSource):
            source.release()

    def _report(self, done: int, total: int) -> None:
        send(self._link, Reply[Any](progress=(done, total)))

    def _new_status(self) -> DeviceStatus | None:
        """Return the status, unless the last one is not old."""
        now = time.monotonic()
        if now - self._told_at < STATUS_S:
            return None
        self._told_at = now
        return self._status()

    def _status(self) -> DeviceStatus:
        device = self._device
        spilled = device.spilled_bytes() if isinstance(device, SpillingDevice) else 0
        kernels = {number: use for number, one in self._stages.items() if (use := one.kernels()) is not None}
        return DeviceStatus(device.free_bytes(), spilled, kernels)


def send(link: Link, reply: Reply[Any]) -> None:
    """Send a reply to the engine."""
    frame = ArrayFrame(reply)
    frame.write_to(link.reserve(frame.num_bytes, SEND_LIMIT_S))
    link.commit(frame.num_bytes)
