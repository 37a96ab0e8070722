"""A Vulkan device as a device of llmd."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api import (
    HOST_MEMORY,
    DeviceInfo,
    DeviceOptions,
    LoadedWeights,
    Program,
    Progress,
    Refusal,
    TensorSource,
)
from llmd.api.byte_size import format_bytes
from llmd.api.features import (
    ADAPTERS,
    ATTENTION_SUMS,
    CHOSEN_POSITIONS,
    COLUMNS,
    DRAWS,
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
from llmd.api.machine import available_bytes
from llmd.api.ops import FACTOR_OPS, OP_KINDS
from llmd_backend_vulkan.bandwidth import read_rate
from llmd_backend_vulkan.kv_memory import KV_CODES
from llmd_backend_vulkan.limits import refusals
from llmd_backend_vulkan.matrices import CLAIMED_FORMATS
from llmd_backend_vulkan.memory import Arena
from llmd_backend_vulkan.programs import COMPUTED, PATTERNS
from llmd_backend_vulkan.runtime import Runtime
from llmd_backend_vulkan.tuning import Tuner, default_folder
from llmd_backend_vulkan.vulkan import CPU, DISCRETE, Loader, PhysicalDevice
from llmd_backend_vulkan.weights import VulkanWeights, load_weights

_VERSION = 1
"""Of how keys and values are computed and stored."""

_SCORES = {DISCRETE: 80, CPU: 1}
_SHARED_SCORE = 40
"""Of a GPU without memory of its own: less than the CPU backend's."""


def device_name(device: PhysicalDevice) -> str:
    """Return the name that users type."""
    return f"vulkan:{device.index}"


def describe(device: PhysicalDevice, *, queues: bool = True) -> DeviceInfo:
    """Return what is known of a usable device before it is opened; ``queues``: Kompute has our additions."""
    return DeviceInfo(
        name=device_name(device),
        kind="vulkan",
        score=_SCORES.get(device.kind, _SHARED_SCORE),
        memory_bytes=device.memory_bytes,
        formats=CLAIMED_FORMATS,
        kv_dtypes=tuple(KV_CODES),
        ops=tuple(kind for kind in OP_KINDS if kind in COMPUTED),
        patterns=PATTERNS,
        row_exact=True,
        queues=queues,
        description=f"{device.name}, {format_bytes(device.memory_bytes)}, {device.driver or 'unnamed driver'}",
        kv_layout=f"vulkan {_VERSION}, {device.name}, {device.driver}",
        activations=("f32",),
        precisions=("f32",),
        integer_ops=FACTOR_OPS,
        features=(
            ADAPTERS,
            ATTENTION_SUMS,
            CHOSEN_POSITIONS,
            COLUMNS,
            DRAWS,
            GIVEN_EXPERTS,
            KERNELS,
            LATENT,
            LIMITS,
            OWN_WEIGHTS,
            SHARED_KEYS,
            SINKS,
            STATE,
            STREAMS,
            STRIDES,
            TAPS,
            *((SPANS,) if device.timestamp_bits or not queues else ()),
        ),
        memory_id=device.memory_id,
    )


class VulkanDevice:
    """See `llmd.api.Device`."""

    def __init__(self, device: PhysicalDevice, options: DeviceOptions, *, use_additions: bool = True) -> None:
        """Open a device; without our additions to Kompute if tests ask for that.

        Raises:
            DeviceError: Kompute or the driver does not work.
        """
        self.physical = device
        """What its driver says."""
        self.runtime = Runtime(device, device_name(device), use_additions=use_additions)
        self.info = describe(device, queues=self.runtime.has_additions)
        arena = Arena(self.runtime)
        self._arena: Arena | None = arena
        # On a processor, the fewest instructions are fastest, and measuring would take seconds.
        self._tuner = None if device.kind == CPU else Tuner(arena, default_folder())
        # Kept open: an engine looks at the free memory every few seconds, and making one takes 40 ms.
        self._loader = Loader()

    def check(self, program: Program) -> list[Refusal]:
        return refusals(program)

    def read_rate(self, budget_s: float) -> float:
        return read_rate(self._opened(), budget_s, self.free_bytes())

    def free_bytes(self) -> int:
        arena = self._opened()
        now = self._loader.devices()[self.physical.index]
        return arena.free_bytes + unused_bytes(now, arena.num_bytes)

    def spilled_bytes(self) -> int:
        """See `llmd.api.SpillingDevice`."""
        now = self._loader.devices()[self.physical.index]
        return now.spilled_bytes(self._opened().num_bytes)

    def load(
        self, program: Program, tensors: TensorSource, progress: Progress, have: Sequence[LoadedWeights] = ()
    ) -> VulkanWeights:
        mine = [one for one in have if isinstance(one, VulkanWeights)]
        return load_weights(self._opened(), program, tensors, progress, mine, self._tuner)

    def close(self) -> None:
        self._arena = self._tuner = None
        self._loader.close()

    def _opened(self) -> Arena:
        if self._arena is None:
            raise ValueError("this device is closed")
        return self._arena


def unused_bytes(now: PhysicalDevice, taken: int) -> int:
    """Return the bytes of a device's memory that nobody has taken; this process has ``taken`` some.

    ``now`` is what the driver just said. If it does not say what is free, it is what the memory has and this
    process has not taken.
    """
    free = now.memory_bytes - taken if now.free_bytes is None else now.free_bytes
    return min(free, available_bytes()) if now.memory_id == HOST_MEMORY else free
