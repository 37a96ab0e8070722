"""A card as a device of llmd."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api import (
    DeviceInfo,
    DeviceOptions,
    LoadedWeights,
    Program,
    Progress,
    Refusal,
    TensorSource,
)
from llmd.api.features import (
    ADAPTERS,
    ATTENTION_SUMS,
    CHOSEN_POSITIONS,
    COLUMNS,
    DRAWS,
    EXPERT_CACHE,
    GIVEN_EXPERTS,
    KERNELS,
    LATENT,
    LIMITS,
    OWN_WEIGHTS,
    SHARED_KEYS,
    SINKS,
    SPANS,
    STATE,
    STREAMS,
    STRIDES,
    TAPS,
)
from llmd.api.ops import FACTOR_OPS, OP_KINDS
from llmd_backend_cuda.bandwidth import read_rate
from llmd_backend_cuda.kernel_cache import default_folder
from llmd_backend_cuda.kv_memory import KV_CODES
from llmd_backend_cuda.limits import refusals
from llmd_backend_cuda.matrix_forms import CLAIMED_FORMATS
from llmd_backend_cuda.ops.linear import ROUND_SPEC
from llmd_backend_cuda.probe import CardProperties
from llmd_backend_cuda.programs import COMPUTED, PATTERNS
from llmd_backend_cuda.runtime import KernelSpec, Runtime
from llmd_backend_cuda.tuning import Tuner
from llmd_backend_cuda.weights import CudaWeights, load_weights

_VERSION = 1
"""Of how keys and values are computed and stored."""


def describe(card: CardProperties) -> DeviceInfo:
    """Return what is known of a usable card before it is opened."""
    major, minor = card.capability
    return DeviceInfo(
        name=card.device,
        kind="cuda",
        score=100,
        memory_bytes=card.memory_bytes,
        formats=CLAIMED_FORMATS,
        kv_dtypes=tuple(KV_CODES),
        ops=tuple(kind for kind in OP_KINDS if kind in COMPUTED),
        patterns=PATTERNS,
        row_exact=True,
        queues=True,
        description=card.description,
        kv_layout=f"cuda {_VERSION}, {major}.{minor}",
        activations=("f16", "int8"),
        precisions=("f16",),
        integer_ops=FACTOR_OPS,
        features=(
            ADAPTERS,
            CHOSEN_POSITIONS,
            STRIDES,
            ATTENTION_SUMS,
            GIVEN_EXPERTS,
            LIMITS,
            DRAWS,
            STATE,
            LATENT,
            SINKS,
            OWN_WEIGHTS,
            SHARED_KEYS,
            COLUMNS,
            TAPS,
            SPANS,
            STREAMS,
            KERNELS,
            *(() if card.is_integrated else (EXPERT_CACHE,)),
        ),
        memory_id=card.memory_id,
        aliases=(card.uuid,),
    )


def prepared_specs() -> tuple[KernelSpec, ...]:
    """Return kernels that every model needs. Those of a model are compiled when it is loaded."""
    return (
        KernelSpec.of("read_memory", "read_memory"),
        KernelSpec.of("candidates", "scan_parts"),
        ROUND_SPEC,
    )


class CudaDevice:
    """See `llmd.api.Device`."""

    def __init__(self, card: CardProperties, options: DeviceOptions, runtime: Runtime | None = None) -> None:
        """Open a card; tests give the runtime that simulates it, where products are not measured.

        Raises:
            DeviceError: the card, its driver or NVRTC does not work.
        """
        self.info = describe(card)
        self._tuner: Tuner | None = None
        if runtime is None:
            from llmd_backend_cuda.cupy_runtime import CupyRuntime

            runtime = CupyRuntime(card.index)
            self._tuner = Tuner(card, default_folder())
        self._runtime: Runtime | None = runtime

    def check(self, program: Program) -> list[Refusal]:
        return refusals(program)

    def read_rate(self, budget_s: float) -> float:
        return read_rate(self._opened(), budget_s)

    def free_bytes(self) -> int:
        return self._opened().free_bytes()

    def load(
        self,
        program: Program,
        tensors: TensorSource,
        progress: Progress,
        have: Sequence[LoadedWeights] = (),
    ) -> CudaWeights:
        mine = [one for one in have if isinstance(one, CudaWeights)]
        return load_weights(self._opened(), program, tensors, progress, mine, self._tuner)

    def close(self) -> None:
        if self._runtime is not None:
            self._runtime.close()
        self._runtime = None

    def _opened(self) -> Runtime:
        if self._runtime is None:
            raise ValueError("this device is closed")
        return self._runtime
