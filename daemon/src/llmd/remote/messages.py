"""What an engine asks of the process of a device, and what it is told.

Each request has a type of its reply in `REPLIES`, or none: then it is not answered, and its error is that of
the ticket that it names. Weights, stages and tickets have numbers that the engine chooses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.device import DeviceOptions, Refusal, StageLimits
from llmd.api.kernel_use import KernelUse
from llmd.api.kv import KVDtype
from llmd.api.program import Program
from llmd.api.spans import Span
from llmd.api.step import Float32, Int32, LateEdits, Selection, Step, StepResult
from llmd.host.names import PluginName
from llmd.models.source_recipe import SourceRecipe
from llmd.remote.errors import ErrorReport


class Job(msgspec.Struct, frozen=True):
    """What the process gets at its start."""

    address: str
    """Where the engine listens."""
    transport: PluginName
    plugin: PluginName
    """Of the backend."""
    backend: str
    device: str
    options: DeviceOptions
    search_path: tuple[str, ...]
    """``sys.path`` of the engine."""


class CheckProgram(msgspec.Struct, frozen=True, tag=True):
    """`Device.check`."""

    program: Program


class ReadRate(msgspec.Struct, frozen=True, tag=True):
    """`Device.read_rate`."""

    budget_s: float


class GetStatus(msgspec.Struct, frozen=True, tag=True):
    """`DeviceStatus`."""


class LoadWeights(msgspec.Struct, frozen=True, tag=True):
    """`Device.load`."""

    weights: int
    program: Program
    source: SourceRecipe
    have: tuple[int, ...]


class GetKVBytes(msgspec.Struct, frozen=True, tag=True):
    """`LoadedWeights.kv_bytes`."""

    weights: int
    group: int
    kv_dtype: KVDtype


class GetStepBytes(msgspec.Struct, frozen=True, tag=True):
    """`LoadedWeights.step_bytes`."""

    weights: int
    limits: StageLimits


class MakeStage(msgspec.Struct, frozen=True, tag=True):
    """`LoadedWeights.stage`."""

    weights: int
    stage: int
    blocks: Mapping[int, int]
    limits: StageLimits


class CloseWeights(msgspec.Struct, frozen=True, tag=True):
    """`LoadedWeights.close`."""

    weights: int


class SubmitStep(msgspec.Struct, frozen=True, tag=True):
    """`Stage.submit`."""

    stage: int
    ticket: int
    step: Step
    hidden: Float32 | None
    selection: Selection | None


class ApplyEdits(msgspec.Struct, frozen=True, tag=True):
    """`Stage.apply_edits`."""

    stage: int
    ticket: int
    edits: LateEdits


class ApplyMasks(msgspec.Struct, frozen=True, tag=True):
    """`Stage.apply_masks`."""

    stage: int
    ticket: int
    masks: NDArray[np.uint32]


class WaitForStep(msgspec.Struct, frozen=True, tag=True):
    """`Stage.wait`."""

    stage: int
    ticket: int
    timeout_s: float


class ReadHidden(msgspec.Struct, frozen=True, tag=True):
    """`Stage.hidden`, or `Stage.tap` with the part."""

    stage: int
    ticket: int
    tap: int | None = None


class ReadRows(msgspec.Struct, frozen=True, tag=True):
    """`Stage.rows`, or `Stage.raw_rows`."""

    stage: int
    ticket: int
    outputs: Int32
    raw: bool


class ReadSpans(msgspec.Struct, frozen=True, tag=True):
    """`Stage.spans`."""

    stage: int
    ticket: int


class ReleaseTicket(msgspec.Struct, frozen=True, tag=True):
    """`Stage.release`."""

    stage: int
    ticket: int


class ReadBlocks(msgspec.Struct, frozen=True, tag=True):
    """`Stage.read_blocks`."""

    stage: int
    group: int
    blocks: Int32


class WriteBlocks(msgspec.Struct, frozen=True, tag=True):
    """`Stage.write_blocks`."""

    stage: int
    group: int
    blocks: Int32
    contents: NDArray[np.uint8]


class CloseStage(msgspec.Struct, frozen=True, tag=True):
    """`Stage.close`."""

    stage: int


OfStage = (
    SubmitStep
    | ApplyEdits
    | ApplyMasks
    | WaitForStep
    | ReadHidden
    | ReadRows
    | ReadSpans
    | ReleaseTicket
    | ReadBlocks
    | WriteBlocks
    | CloseStage
)
Request = (
    CheckProgram
    | ReadRate
    | GetStatus
    | LoadWeights
    | GetKVBytes
    | GetStepBytes
    | MakeStage
    | CloseWeights
    | OfStage
)


class DeviceStatus(msgspec.Struct, frozen=True):
    """What may change while a device works."""

    free_bytes: int
    """`Device.free_bytes`."""
    spilled_bytes: int = 0
    """`llmd.api.SpillingDevice.spilled_bytes`; 0 of other devices."""
    kernels: Mapping[int, KernelUse] = {}
    """`NamesKernels.kernels` of the stages that have them, by number."""


REPLIES: Mapping[type, Any] = {
    CheckProgram: list[Refusal],
    ReadRate: float,
    GetStatus: DeviceStatus,
    LoadWeights: None,
    GetKVBytes: int,
    GetStepBytes: int,
    MakeStage: None,
    WaitForStep: StepResult,
    ReadHidden: Float32,
    ReadRows: Float32,
    ReadSpans: tuple[Span, ...],
    ReadBlocks: NDArray[np.uint8],
    WriteBlocks: None,
}
"""Types of replies. A process that has opened its device sends a `DeviceInfo` unasked."""

T = TypeVar("T")


class Reply(msgspec.Struct, Generic[T], frozen=True):
    """What the process answers. Before the last reply to a request, those with ``progress`` may come."""

    value: T | None = None
    """What was asked for; None if the request failed or has no result."""
    error: ErrorReport | None = None
    """Why the request failed."""
    progress: tuple[int, int] | None = None
    """Bytes done and total bytes of a load that goes on."""
    status: DeviceStatus | None = None
    """From time to time."""
