"""Devices, what they can do, and the stages that run steps on them.

Life of a device: `Device.check` says which ops it refuses; `Device.load` takes the weights of a program;
`LoadedWeights.stage` allocates KV pools and step buffers; the stage then runs steps until it is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.kv import KVDtype
from llmd.api.ops import FACTOR_OPS
from llmd.api.program import ActivationDtype, Pattern, Program
from llmd.api.step import NUM_CANDIDATES, Float32, Int32, Selection, Step, StepResult, Ticket
from llmd.api.tensors import Format, TensorSource

Progress = Callable[[int, int], None]
"""Called now and then while loading with (bytes done, bytes in all)."""


class DeviceInfo(msgspec.Struct, frozen=True):
    """What the host and the planner may know of a device before it is opened.

    ``name`` is unique in one daemon and is what users type (``cpu``, ``reference``, ``cuda:0``).
    ``score``: 0 means present but unusable (then ``reason`` says why, in one sentence); the usable device with
    the highest score is the default. ``memory_bytes`` may hold weights and KV. ``row_exact``: a row's result is
    bit-identical at any batch, chunk and block placement. ``queues``: `Stage.submit` returns before the step is done, so
    that the next one is worth submitting meanwhile. ``description`` names the hardware for people.

    ``kv_layout`` names how keys and values are computed and laid out: a block's bytes may be moved between stages of equal
    programs and KV dtypes on devices that say the same, in other processes, too. (optional) Empty: `Stage.read_blocks`
    and `Stage.write_blocks` are not there. ``activations``: how rows may be held that integer formats multiply.
    ``integer_ops``: kinds of ops whose matrices may be in an integer format; all other weights of a program are plain.
    """

    name: str
    kind: str
    score: int
    memory_bytes: int
    formats: tuple[Format, ...]
    kv_dtypes: tuple[KVDtype, ...]
    ops: tuple[str, ...]
    patterns: tuple[Pattern, ...] = ()
    row_exact: bool = False
    queues: bool = False
    description: str = ""
    reason: str = ""
    kv_layout: str = ""
    activations: tuple[ActivationDtype, ...] = ("int8",)
    integer_ops: tuple[str, ...] = FACTOR_OPS


class Refusal(msgspec.Struct, frozen=True):
    """One op (or weight format, or KV dtype) of a program that a device cannot run."""

    what: str
    reason: str


class DeviceProfile(msgspec.Struct, frozen=True):
    """Measured rates of a device.

    ``read_bytes_per_s``: streaming reads of weights-sized memory. ``decode_bytes_per_s``: weight bytes per second
    of a one-row linear op, for each format that was measured. ``prefill_flops_per_s``: floating (or integer)
    operations per second of a 256-row linear op in the fastest format, two for each multiply-add.
    """

    read_bytes_per_s: float
    decode_bytes_per_s: Mapping[Format, float]
    prefill_flops_per_s: float


class DeviceOptions(msgspec.Struct, frozen=True):
    """What users may ask of a device when it is opened. A device for which an option means nothing passes it over.

    ``threads``: how many threads of this machine's processors compute, None for as many as the device finds best. More
    than there are processors is allowed: they take turns.
    """

    threads: int | None = None


class StageLimits(msgspec.Struct, frozen=True):
    """Sizes that a stage allocates for, once.

    ``max_rows`` and ``max_sequences`` bound one step; ``max_outputs`` the rows of its selection; ``tickets`` the
    steps in flight, each with its own buffers.
    """

    max_rows: int
    max_sequences: int
    max_outputs: int
    kv_dtype: KVDtype = "f16"
    tickets: int = 2
    num_candidates: int = NUM_CANDIDATES


class HiddenRef(Protocol):
    """Hidden states ``[rows, hidden_size]`` of one ticket, wherever they live."""

    def host(self) -> Float32:
        """Return them as a C-contiguous float32 array in host memory, valid until the ticket is released."""
        ...


class HostHidden(msgspec.Struct, frozen=True):
    """Hidden states that already lie in host memory."""

    array: Float32

    def host(self) -> Float32:
        """Return the array itself."""
        return self.array


class Stage(Protocol):
    """The parts of one program with KV pools and step buffers. Used by one thread at a time.

    Each step is one `submit`, then `wait` (last stage) or `hidden` (others), then `release`. Tickets complete
    in the order of submission. A `submit` that raises, and a `wait` that raises `DeviceError`, have released
    the ticket; the contents of KV blocks at that step's positions are then undefined, all others are unchanged.
    """

    def submit(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> Ticket:
        """Queue the whole step: block copies, layers, head and candidates. Never waits for the device.

        ``hidden`` is None exactly where the program begins with the embedding, ``selection`` is None exactly
        where it does not end with the head. A CPU stage does its work here.

        Raises:
            DeviceError: the device failed, or every ticket is in flight.
            ValueError: an array contradicts the contract (shape, dtype, range); nothing was queued.
        """
        ...

    def apply_masks(self, ticket: Ticket, masks: NDArray[np.uint32]) -> None:
        """Finish the rows marked as masked: uint32 ``[masked rows, ceil(vocab / 32)]``, bit ``id % 32`` of word
        ``id // 32`` set where the id is allowed; rows in the order of the selection. It may come after the ticket that
        the step is fed from was waited for, while the layers are computed.
        """
        ...

    def hidden(self, ticket: Ticket) -> HiddenRef:
        """Hidden states that leave this stage, for the next stage's `submit`."""
        ...

    def wait(self, ticket: Ticket, timeout_s: float) -> StepResult:
        """Return the candidates of a ticket.

        Raises:
            DeviceError: the device failed, or did not finish within ``timeout_s`` seconds; the ticket is released.
            ValueError: rows of the step are masked and their masks have not come; the ticket stays.
        """
        ...

    def rows(self, ticket: Ticket, outputs: NDArray[np.int32]) -> Float32:
        """Full edited logits float32 ``[len(outputs), vocab]`` of output rows, by their index in the selection."""
        ...

    def raw_rows(self, ticket: Ticket, outputs: NDArray[np.int32]) -> Float32:
        """As `rows`, before edits and masks."""
        ...

    def release(self, ticket: Ticket) -> None:
        """Give the ticket's buffers back. Results and hidden states of it are invalid from here."""
        ...

    def read_blocks(self, group: int, blocks: Int32) -> NDArray[np.uint8]:
        """(optional, `DeviceInfo.kv_layout`) Return what blocks of a KV group hold, uint8 ``[len(blocks), kv_bytes]``.

        The caller owns the array. No ticket is in flight.

        Raises:
            ValueError: there is no such block.
        """
        ...

    def write_blocks(self, group: int, blocks: Int32, contents: NDArray[np.uint8]) -> None:
        """(optional) The reverse of `read_blocks`."""
        ...

    def close(self) -> None:
        """Free pools and buffers; open tickets are abandoned. Closing twice is allowed."""
        ...


class LoadedWeights(Protocol):
    """Weights of a program on a device."""

    def kv_bytes(self, group: int, kv_dtype: KVDtype) -> int:
        """Bytes of one block of the group as this device lays it out, all its layers of the program included."""
        ...

    def free_bytes(self) -> int:
        """Bytes that KV pools and step buffers may use now that the weights are loaded."""
        ...

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> Stage:
        """Allocate pools of ``blocks[group]`` blocks (ids from 0) and step buffers; complete when it returns.

        Raises:
            MemoryBudgetError: the memory cannot be had.
        """
        ...

    def close(self) -> None:
        """Free the weights. Stages must be closed before."""
        ...


class Device(Protocol):
    """An opened device. Opening and using it happens in the engine process only."""

    @property
    def info(self) -> DeviceInfo:
        """What `probe` said of it; ``description`` may say more of a device that is open."""
        ...

    def check(self, program: Program) -> list[Refusal]:
        """Return every reason why this device cannot run the program; empty means it can."""
        ...

    def benchmark(self, budget_s: float) -> DeviceProfile:
        """Measure the device for at most about ``budget_s`` seconds."""
        ...

    def load(self, program: Program, tensors: TensorSource, progress: Progress) -> LoadedWeights:
        """Take the weights of a program.

        Raises:
            CheckpointError: a tensor is missing or contradicts the program.
            MemoryBudgetError: the weights do not fit.
        """
        ...

    def close(self) -> None:
        """Free what the device holds. Closing twice is allowed."""
        ...
