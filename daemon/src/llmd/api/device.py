"""Devices, their capabilities, and the stages that run steps on them.

Life of a device: `Device.check` reports what it refuses, `Device.load` loads the weights of a program,
`LoadedWeights.stage` allocates KV pools and step buffers, and the stage runs steps until it is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.kv import KVDtype
from llmd.api.ops import FACTOR_OPS
from llmd.api.program import ActivationDtype, Pattern, Precision, Program
from llmd.api.spans import Span
from llmd.api.step import NUM_CANDIDATES, Float32, Int32, LateEdits, Selection, Step, StepResult, Ticket
from llmd.api.tensors import Format, TensorSource

HOST_MEMORY = "host"
"""`DeviceInfo.memory_id` of devices that compute in main memory."""

Progress = Callable[[int, int], None]
"""Called from time to time during a load, with (bytes done, total bytes)."""


class DeviceInfo(msgspec.Struct, frozen=True):
    """What is known of a device before it is opened."""

    name: str
    """Unique in a daemon; users type it (``cpu``, ``reference``, ``cuda:0``)."""
    kind: str
    """Name of the backend."""
    score: int
    """The usable device with the highest score is the default; 0: present but unusable."""
    memory_bytes: int
    """Memory for weights, KV cache and step buffers."""
    formats: tuple[Format, ...]
    """Weight formats that it can run."""
    kv_dtypes: tuple[KVDtype, ...]
    """Types of the KV cache that it can run."""
    ops: tuple[str, ...]
    """Op kinds that it can run."""
    patterns: tuple[Pattern, ...] = ()
    """Sequences of ops that it can run as one kernel."""
    row_exact: bool = False
    """The result of a row is bit-identical for any batch, chunk and placement of blocks."""
    queues: bool = False
    """`Stage.submit` returns before the step is done: the next step should be submitted meanwhile."""
    description: str = ""
    """The hardware, for users."""
    reason: str = ""
    """If ``score`` is 0: why, in one sentence."""
    kv_layout: str = ""
    """(optional) Identifies how keys and values are computed and stored. The bytes of a block can be moved
    between stages, also of different processes, if program, KV dtype and this text are equal. Empty:
    `Stage.read_blocks` and `Stage.write_blocks` do not exist."""
    activations: tuple[ActivationDtype, ...] = ("int8",)
    """Supported types of rows that are multiplied by weights in integer formats; first the device's choice.
    Each but ``int8`` must also be one of ``precisions``."""
    precisions: tuple[Precision, ...] = ("f32",)
    """Supported types of rows that are multiplied by plain weights, keys and values; first the device's
    choice with ``int8`` activations."""
    integer_ops: tuple[str, ...] = FACTOR_OPS
    """Op kinds whose matrices may have an integer or scaled format; all other weights of a program must be
    plain."""
    features: tuple[str, ...] = ()
    """Optional features that it supports (`llmd.api.features`)."""
    uses_threads: bool = False
    """It computes on threads of the host, as many as `DeviceOptions.threads` says."""
    memory_id: str = HOST_MEMORY
    """(optional) Identifies the memory that the device computes in: devices with equal ids share it. Name the
    memory of a card by what all of its drivers know, such as its PCI address."""
    aliases: tuple[str, ...] = ()
    """(optional) Other names that users may type. Unlike ``name``, they stay with the hardware when
    devices are added or removed: the UUID of a card."""


class Refusal(msgspec.Struct, frozen=True):
    """A part of a program that a device cannot run."""

    what: str
    """The op, feature, weight format or KV dtype."""
    reason: str
    """Why the device cannot run it."""


class DeviceProfile(msgspec.Struct, frozen=True):
    """Measured rates of a device (``llmd.profiling``). A short measurement leaves some out: they are 0."""

    read_bytes_per_s: float
    """Streaming reads of memory the size of weights."""
    decode_bytes_per_s: Mapping[Format, float]
    """Weight bytes that a step of one row reads per second, for each measured format."""
    prefill_flops_per_s: Mapping[Format, Mapping[int, float]]
    """Floating-point (or integer) operations per second of products with weights, for each measured format
    and number of rows of a step; a multiply-add counts as two."""
    kv_bytes_per_s: float = 0.0
    """Bytes of keys and values that the attention of one row reads per second."""
    attention_flops_per_s: float = 0.0
    """Operations per second of the attention of many rows."""
    step_s: float = 0.0
    """Seconds that a step takes in addition to its parts."""
    part_s: float = 0.0
    """Seconds that each part of a layer takes, however small."""
    copy_bytes_per_s: float = 0.0
    """Bytes of hidden states that are copied per second from host memory to the device, or back."""
    stream_bytes_per_s: float = 0.0
    """Bytes of streamed weights that are copied to the device per second; 0: it streams none."""

    @property
    def fastest_prefill(self) -> float:
        """The highest rate of products with weights, in operations per second; 0 if none was measured."""
        rates = (rate for by_rows in self.prefill_flops_per_s.values() for rate in by_rows.values())
        return max(rates, default=0.0)


class DeviceOptions(msgspec.Struct, frozen=True):
    """User options for opening a device. A device ignores options that do not apply to it."""

    threads: int | None = None
    """Number of host threads that compute; None: the device chooses. May exceed the number of processors."""
    memory_bytes: int | None = None
    """Most bytes of the device's memory for weights, KV cache and step buffers; None: no limit. The engine
    sizes KV pools by it."""
    deterministic: bool = False
    """Compute the same bits in every run, even if that is slower."""


class StageLimits(msgspec.Struct, frozen=True):
    """Sizes that a stage allocates for, once."""

    max_rows: int
    """Most rows in a step."""
    max_sequences: int
    """Most sequences in a step."""
    max_outputs: int
    """Most output rows in a step."""
    kv_dtype: KVDtype = "f16"
    """Type of the KV cache."""
    tickets: int = 2
    """Most steps in flight; each has its own buffers."""
    num_candidates: int = NUM_CANDIDATES
    """Candidates per output row."""
    max_adapters: int = 0
    """Adapters that a step may name: those of the model."""
    spans: bool = False
    """Keep the times of each step for `Stage.spans`. Only for devices with the feature `SPANS`. False: spend
    no time on them."""


class HiddenRef(Protocol):
    """Hidden states ``[rows, hidden_size]`` of one ticket, in any memory."""

    def host(self) -> Float32:
        """Return them as a C-contiguous float32 array in host memory, valid until the ticket is released."""
        ...


class HostHidden(msgspec.Struct, frozen=True):
    """Hidden states in host memory."""

    array: Float32
    """``[rows, hidden_size]``."""

    def host(self) -> Float32:
        """Return the array itself."""
        return self.array


class Stage(Protocol):
    """A program with its KV pools and step buffers. Used by one thread at a time.

    A step is `submit`, then `wait` (last stage) or `hidden` (other stages), then `release`. Tickets complete
    in order of submission. If `submit` raises, or `wait` raises `DeviceError`, the ticket is released; the KV
    blocks at that step's positions and the slots that it writes are then undefined, and all others are
    unchanged.

    Every method but `release` and `close` may raise `DeviceLostError`, which names the devices that are gone:
    this one, or one that it waits for. The engine then closes the stage, and the weights and the devices that
    are gone, and moves their part of the model to another device. `submit` and `wait` may also raise
    `DeviceMemoryError`: the engine builds the stage again with a smaller KV pool. `release` and `close`, also
    of weights and devices, work even when the device is gone.
    """

    def submit(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> Ticket:
        """Queue the whole step: block copies, layers, head and candidates. Do not wait for the device.

        ``hidden`` is None if and only if the program begins with the embedding, ``selection`` if and only if
        it does not end with the head. A CPU stage does its work here.

        Raises:
            DeviceError: the device failed, or all tickets are in flight.
            ValueError: an array violates the contract (shape, dtype, range); nothing was queued.
        """
        ...

    def apply_edits(self, ticket: Ticket, edits: LateEdits) -> None:
        """(optional, see `llmd.api.features.DRAWS`) Apply the edits of the late rows of a selection.

        Called once for a ticket with late rows, before its masks, and while the layers may still run, after
        the ticket that the step is fed from has been waited for.
        """
        ...

    def apply_masks(self, ticket: Ticket, masks: NDArray[np.uint32]) -> None:
        """Apply masks uint32 ``[masked rows, ceil(vocab / 32)]`` to the masked rows, in selection order.

        Bit ``id % 32`` of word ``id // 32`` is set if the id is allowed. May be called while the layers run,
        after the ticket that the step is fed from has been waited for.
        """
        ...

    def hidden(self, ticket: Ticket) -> HiddenRef:
        """Return the hidden states that this stage outputs, for `submit` of the next stage."""
        ...

    def tap(self, ticket: Ticket, part: int) -> HiddenRef:
        """(optional, see `llmd.api.features.TAPS`) Return the hidden states after a part of `Program.taps`.

        They are ``[rows, hidden_size]``, of all rows of the step.

        Raises:
            ValueError: the part is no tap of the program.
        """
        ...

    def wait(self, ticket: Ticket, timeout_s: float) -> StepResult:
        """Wait for a ticket and return its candidates.

        Raises:
            DeviceLostError: the device is gone, or did not finish within ``timeout_s`` seconds; releases the
                ticket. The time follows from earlier steps (``llmd.engine.steps.step_limit``): compile what a
                step needs in `LoadedWeights.stage`.
            DeviceError: the device failed otherwise; releases the ticket.
            ValueError: the step has late or masked rows, and `apply_edits` or `apply_masks` was not called;
                the ticket stays valid.
        """
        ...

    def rows(self, ticket: Ticket, outputs: NDArray[np.int32]) -> Float32:
        """Return the edited logits float32 ``[len(outputs), vocab]`` of output rows.

        ``outputs`` are indices in the selection.
        """
        ...

    def raw_rows(self, ticket: Ticket, outputs: NDArray[np.int32]) -> Float32:
        """Return the logits as `rows` does, but before edits and masks."""
        ...

    def spans(self, ticket: Ticket) -> Sequence[Span]:
        """(optional, see `llmd.api.features.SPANS`) Return when the stage worked on a step.

        At least one is of kind ``device``. Called only with `StageLimits.spans`, once the step is done: after
        `wait`, or after its hidden states were read.
        """
        ...

    def release(self, ticket: Ticket) -> None:
        """Free the ticket's buffers. Its results and hidden states are invalid from now on."""
        ...

    def read_blocks(self, group: int, blocks: Int32) -> NDArray[np.uint8]:
        """(optional, see `DeviceInfo.kv_layout`) Return the bytes of blocks, uint8 ``[blocks, kv_bytes]``.

        The caller owns the array. Called only when no ticket is in flight.

        Raises:
            ValueError: there is no such block.
        """
        ...

    def write_blocks(self, group: int, blocks: Int32, contents: NDArray[np.uint8]) -> None:
        """(optional) Overwrite KV blocks with bytes that `read_blocks` returned."""
        ...

    def close(self) -> None:
        """Free pools and buffers; tickets in flight are dropped. Closing twice is allowed."""
        ...


class LoadedWeights(Protocol):
    """Weights of a program on a device."""

    def kv_bytes(self, group: int, kv_dtype: KVDtype) -> int:
        """Return the bytes of one block (or slot) of a KV group here, for all its layers in the program."""
        ...

    def step_bytes(self, limits: StageLimits) -> int:
        """Return the bytes of step buffers that `stage` allocates in the device's memory besides KV pools.

        `step_buffer_bytes` counts them without padding and scratch.
        """
        ...

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> Stage:
        """Allocate pools of ``blocks[group]`` blocks (ids from 0) and step buffers; complete when it returns.

        Raises:
            MemoryBudgetError: there is not enough memory.
            DeviceLostError: the device is gone.
        """
        ...

    def close(self) -> None:
        """Free the weights. All stages are closed before. Closing twice is allowed."""
        ...


class Device(Protocol):
    """An opened device. It is used only in the process that opened it (`Backend.open`)."""

    @property
    def info(self) -> DeviceInfo:
        """What `Backend.probe` returned; ``description`` may have more detail once the device is open."""
        ...

    def check(self, program: Program) -> list[Refusal]:
        """Return all reasons why this device cannot run the program; empty: it can. Called before `load`."""
        ...

    def read_rate(self, budget_s: float) -> float:
        """Return the bytes per second at which memory is read, measured for about ``budget_s`` seconds.

        Read as much as weights would be, so that caches do not help. Everything else is measured by running
        small models on the device (`DeviceProfile`).
        """
        ...

    def free_bytes(self) -> int:
        """Return the bytes of the device's memory that are free now, whoever uses the rest.

        Loaded weights that can be dropped and read again from a file may count as free.
        """
        ...

    def load(
        self,
        program: Program,
        tensors: TensorSource,
        progress: Progress,
        have: Sequence[LoadedWeights] = (),
    ) -> LoadedWeights:
        """Load the weights of a program.

        ``have`` are weights that this device loaded for other programs of the same checkpoint; they have no
        open stages. The device may share weights that both programs contain instead of reading them again.
        The caller still owns ``have`` and closes it when it likes: what is shared stays until all its owners
        are closed. If the weights do not fit, the caller closes ``have`` and calls again without it.

        Raises:
            CheckpointError: a tensor is missing or contradicts the program.
            MemoryBudgetError: the weights do not fit.
            DeviceLostError: the device is gone.
        """
        ...

    def close(self) -> None:
        """Free all resources of the device. Closing twice is allowed."""
        ...


@runtime_checkable
class SpillingDevice(Protocol):
    """(optional) A device whose driver moves its memory to main memory, instead of failing, if it is full."""

    def spilled_bytes(self) -> int:
        """Return the bytes of this process that the driver keeps in main memory now, as far as it says so."""
        ...
