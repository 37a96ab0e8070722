"""A device in a process of its own, with its weights and stages, as the engine sees them.

They answer like those of the device itself (`llmd.api.device`), and are as thread-safe. A step returns its
errors in `RemoteStage.wait` or `RemoteStage.hidden`, because nothing waits for its submission.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from llmd.api.device import DeviceInfo, HiddenRef, HostHidden, LoadedWeights, Progress, Refusal, StageLimits
from llmd.api.kernel_use import KernelUse
from llmd.api.kv import KVDtype
from llmd.api.program import Program
from llmd.api.spans import Span
from llmd.api.step import Float32, Int32, LateEdits, Selection, Step, StepResult, Ticket
from llmd.api.tensors import TensorSource
from llmd.models.source_recipe import HasRecipe
from llmd.remote.connection import Connection, limited
from llmd.remote.messages import (
    ApplyEdits,
    ApplyMasks,
    CheckProgram,
    CloseStage,
    CloseWeights,
    GetKVBytes,
    GetStepBytes,
    LoadWeights,
    MakeStage,
    ReadBlocks,
    ReadHidden,
    ReadRate,
    ReadRows,
    ReadSpans,
    ReleaseTicket,
    SubmitStep,
    WaitForStep,
    WriteBlocks,
)


class RemoteDevice:
    """See `llmd.api.Device`. Weights are read by the process itself, never sent to it."""

    def __init__(self, connection: Connection, info: DeviceInfo) -> None:
        """``info`` is that of the device in the process."""
        # Its stages run on a thread of their own (`ThreadedStage`), which waits for the replies.
        self.info = structs.replace(info, queues=False)
        self._connection = connection
        self._numbers = itertools.count()

    def check(self, program: Program) -> list[Refusal]:
        found: list[Refusal] = self._connection.call(CheckProgram(program))
        return found

    def read_rate(self, budget_s: float) -> float:
        return float(self._connection.call(ReadRate(budget_s)))

    def free_bytes(self) -> int:
        return self._connection.status().free_bytes

    def spilled_bytes(self) -> int:
        """See `llmd.api.SpillingDevice`; 0 if the device is none."""
        return self._connection.status().spilled_bytes

    def load(
        self,
        program: Program,
        tensors: TensorSource,
        progress: Progress,
        have: Sequence[LoadedWeights] = (),
    ) -> RemoteWeights:
        assert isinstance(tensors, HasRecipe), "a source that another process can make"
        earlier = tuple(one.number for one in have if isinstance(one, RemoteWeights))
        number = next(self._numbers)
        request = LoadWeights(number, program, tensors.recipe, earlier)
        self._connection.call(request, on_progress=progress)
        return RemoteWeights(self._connection, number, self._numbers)

    def close(self) -> None:
        self._connection.close()


class RemoteWeights:
    """See `llmd.api.LoadedWeights`."""

    def __init__(self, connection: Connection, number: int, numbers: itertools.count[int]) -> None:
        self.number = number
        """By which the process knows the weights."""
        self._connection = connection
        self._numbers = numbers

    def kv_bytes(self, group: int, kv_dtype: KVDtype) -> int:
        return int(self._connection.call(GetKVBytes(self.number, group, kv_dtype)))

    def step_bytes(self, limits: StageLimits) -> int:
        return int(self._connection.call(GetStepBytes(self.number, limits)))

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> RemoteStage:
        number = next(self._numbers)
        self._connection.call(MakeStage(self.number, number, dict(blocks), limits))
        return RemoteStage(self._connection, number)

    def close(self) -> None:
        self._connection.tell(CloseWeights(self.number))


class RemoteStage:
    """See `llmd.api.Stage`."""

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection = connection
        self._number = number
        self._tickets = itertools.count()

    def submit(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> Ticket:
        ticket = Ticket(next(self._tickets))
        rows = None if hidden is None else hidden.host()
        self._connection.tell(SubmitStep(self._number, ticket, step, rows, selection))
        return ticket

    def apply_edits(self, ticket: Ticket, edits: LateEdits) -> None:
        self._connection.tell(ApplyEdits(self._number, ticket, edits))

    def apply_masks(self, ticket: Ticket, masks: NDArray[np.uint32]) -> None:
        self._connection.tell(ApplyMasks(self._number, ticket, masks))

    def hidden(self, ticket: Ticket) -> HiddenRef:
        return HostHidden(self._connection.call(ReadHidden(self._number, ticket)))

    def tap(self, ticket: Ticket, part: int) -> HiddenRef:
        return HostHidden(self._connection.call(ReadHidden(self._number, ticket, part)))

    def wait(self, ticket: Ticket, timeout_s: float) -> StepResult:
        limit_s = limited(timeout_s)
        result: StepResult = self._connection.call(WaitForStep(self._number, ticket, limit_s), limit_s)
        return result

    def rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        rows: Float32 = self._connection.call(ReadRows(self._number, ticket, outputs, raw=False))
        return rows

    def raw_rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        rows: Float32 = self._connection.call(ReadRows(self._number, ticket, outputs, raw=True))
        return rows

    def spans(self, ticket: Ticket) -> Sequence[Span]:
        spans: Sequence[Span] = self._connection.call(ReadSpans(self._number, ticket))
        return spans

    def kernels(self) -> KernelUse:
        """See `llmd.api.kernel_use.NamesKernels`; what the process last said, if it names them."""
        status = self._connection.last_status
        return KernelUse() if status is None else status.kernels.get(self._number, KernelUse())

    def release(self, ticket: Ticket) -> None:
        self._connection.tell(ReleaseTicket(self._number, ticket))

    def read_blocks(self, group: int, blocks: Int32) -> NDArray[np.uint8]:
        contents: NDArray[np.uint8] = self._connection.call(ReadBlocks(self._number, group, blocks))
        return contents

    def write_blocks(self, group: int, blocks: Int32, contents: NDArray[np.uint8]) -> None:
        self._connection.call(WriteBlocks(self._number, group, blocks, contents))

    def close(self) -> None:
        self._connection.tell(CloseStage(self._number))
