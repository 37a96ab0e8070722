"""A device through Kompute: memory, dispatches, recordings and submissions. No other module knows ``kp``.

Kompute 0.9.0 has no barriers between dispatches, waits in each submission and holds the interpreter's lock
meanwhile. ``build_kompute.py`` adds what is missing. On a ``kp`` without the additions, everything between
two barriers is a submission of its own, which is slower: its end is the barrier.

Kompute enables no optional feature of a device. So shaders see 32-bit words: memory is counted in words.
"""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import DeviceError, DeviceLostError, DeviceMemoryError, LlmdError, MemoryBudgetError
from llmd_backend_vulkan.shaders import spirv
from llmd_backend_vulkan.vulkan import PhysicalDevice

Words = NDArray[np.uint32]

WORD = 4
"""Bytes of a word."""

ADDITIONS = 1
"""The version of the additions that this module is written for (``kp.LLMD_ADDITIONS``)."""

MOST_WORK = 2e10
"""Multiply-adds of a submission. A slow GPU takes some tenths of a second for them; many drivers end what
takes longer than two seconds."""

_ABANDONED: list[object] = []
"""What a device that is lost may still use. It is never freed."""


class Shader(msgspec.Struct, frozen=True):
    """A shader with the values of its specialization constants."""

    name: str
    """Name of the file in ``shaders/``, without ``.comp``."""
    constants: tuple[int, ...] = ()
    """In order of their ids."""


class Buffer:
    """Memory of the device, or of the host where shaders read and write it in place."""

    def __init__(self, tensor: Any, number: int, num_words: int) -> None:
        self.tensor = tensor
        self.number = number
        """Unique in its runtime."""
        self.num_words = num_words

    @property
    def view(self) -> Words:
        """The words of host memory, shared with the device."""
        words: Words = self.tensor.data()
        return words


class Dispatch(msgspec.Struct, frozen=True):
    """A shader with everything that its run needs."""

    shader: Shader
    buffers: tuple[Buffer, ...]
    """In order of the bindings."""
    constants: tuple[int, ...]
    """The words of the push constants; as many for each dispatch of a shader."""
    groups: tuple[int, int, int]
    """Work groups in x, y and z."""
    work: float = 0.0
    """Multiply-adds, as far as they matter: they bound submissions."""


class Recording:
    """Dispatches that can be submitted again and again."""

    def __init__(self, runtime: Runtime, sequences: Sequence[Any], kept: object) -> None:
        self._runtime = runtime
        self._sequences = sequences
        self._kept = kept
        self._is_running = False

    @property
    def num_submissions(self) -> int:
        """How many submissions a run is."""
        return len(self._sequences)

    def submit(self) -> None:
        """Run it after everything that was submitted before; do not wait, if Kompute has our additions.

        Raises:
            DeviceLostError: the device is gone.
            DeviceMemoryError: it has too little memory.
            ValueError: it was submitted, and not waited for.
        """
        if self._is_running:
            raise ValueError("this recording is running")
        self._is_running = self._runtime.has_additions
        for sequence in self._sequences:
            self._runtime.submit(sequence)

    def wait(self, timeout_s: float) -> bool:
        """Wait until it has run; return False if that takes longer.

        Raises:
            DeviceLostError: the device is gone.
        """
        if not self._is_running:
            return True
        end = time.monotonic() + timeout_s
        if not all(self._runtime.wait(one, max(0.0, end - time.monotonic())) for one in self._sequences):
            return False
        self._is_running = False
        return True


class Runtime:
    """An open device. Everything runs in order of submission."""

    def __init__(self, device: PhysicalDevice, name: str, *, use_additions: bool = True) -> None:
        """Open a device; ``name`` is its name in llmd.

        Raises:
            DeviceError: Kompute is missing or cannot open the device.
        """
        self._kp = kompute()
        self.name = name
        self.device = device
        self.has_additions = use_additions and getattr(self._kp, "LLMD_ADDITIONS", 0) == ADDITIONS
        """Whether submissions return at once, and barriers need no submission."""
        self.most_words = min(device.most_range_bytes, device.most_allocation_bytes, (1 << 32) - 4) // WORD
        """Most words of a buffer."""
        self.is_lost = False
        """Whether the device is gone: from then on, nothing of it is freed."""
        self._num_buffers = 0
        self._algorithms: dict[tuple[object, ...], Any] = {}
        self.num_submissions = 0
        """How many submissions there were."""
        with self._errors():
            self._manager = self._kp.Manager(device.index)
            found = self._manager.get_device_properties()["device_name"]
        if found != device.name:
            raise DeviceError(
                f"{name} is {device.name}, but Kompute opened {found}",
                hint="unset variables that change the order of Vulkan's devices, such as MESA_VK_DEVICE_SELECT",
            )

    def allocate(self, num_words: int) -> Buffer:
        """Take memory of the device; its contents are undefined.

        Raises:
            MemoryBudgetError: there is not enough, or a buffer cannot be that large.
        """
        return self._buffer(num_words, self._kp.TensorTypes.storage)

    def host(self, num_words: int) -> Buffer:
        """Take memory of the host that shaders can read and write.

        Raises:
            MemoryBudgetError: there is not enough.
        """
        return self._buffer(num_words, self._kp.TensorTypes.host)

    def free(self, buffer: Buffer) -> None:
        """Forget the shaders that are prepared for a buffer; it is freed with the last reference to it."""
        if self.is_lost:
            self.abandon(buffer)
        for key in [key for key in self._algorithms if buffer.number in key[1]]:  # type: ignore[operator]
            del self._algorithms[key]

    def record(self, phases: Iterable[Sequence[Dispatch]]) -> Recording:
        """Record dispatches. A phase sees what earlier ones wrote; within one, nothing depends on another.

        Raises:
            DeviceMemoryError: there is too little memory.
            DeviceError: a shader cannot be prepared.
        """
        phases = [phase for phase in phases if phase]
        kept = [one.buffers for phase in phases for one in phase]
        with self._errors():
            return Recording(self, [self._sequence(part) for part in self._submissions(phases)], kept)

    def run(self, phases: Iterable[Sequence[Dispatch]], timeout_s: float = 600.0) -> None:
        """Record dispatches, run them once and wait.

        Raises:
            DeviceLostError: the device is gone, or took longer.
        """
        recording = self.record(phases)
        recording.submit()
        if not recording.wait(timeout_s):
            self.abandon(recording)
            raise self.lost(f"it did not answer within {timeout_s:g} s")

    def submit(self, sequence: Any) -> None:
        """Submit a sequence of Kompute."""
        self.num_submissions += 1
        with self._errors():
            if self.has_additions:
                self._kp.llmd_submit(sequence)
            else:
                sequence.eval()

    def wait(self, sequence: Any, timeout_s: float) -> bool:
        """Wait for a sequence of Kompute; return whether it has ended in time."""
        with self._errors():
            return bool(self._kp.llmd_wait(sequence, min(int(timeout_s * 1e9), (1 << 63) - 1)))

    def lost(self, what: str) -> DeviceLostError:
        """Return the error of a device that does not answer; nothing of it is freed from now on."""
        self.is_lost = True
        self.abandon(self._manager, self._algorithms)
        return DeviceLostError(what, devices=(self.name,))

    def abandon(self, *objects: object) -> None:
        """Keep objects until the process ends, as a device that is lost may still use them."""
        _ABANDONED.extend(objects)

    def _buffer(self, num_words: int, kind: Any) -> Buffer:
        if num_words > self.most_words:
            raise MemoryBudgetError(
                f"{self.name} has buffers of at most {self.most_words * WORD} bytes, and {num_words * WORD} are needed",
                hint="lower --kv-memory, --slots or --max-ctx",
            )
        try:
            with self._errors():
                tensor = self._manager.tensor_t(np.empty(max(num_words, 4), np.uint32), kind)
        except DeviceMemoryError as error:
            raise MemoryBudgetError(
                error.message, hint="use a smaller model, or lower --kv-memory"
            ) from error
        self._num_buffers += 1
        return Buffer(tensor, self._num_buffers, num_words)

    def _submissions(self, phases: Sequence[Sequence[Dispatch]]) -> Iterator[Sequence[Sequence[Dispatch]]]:
        """Cut phases into submissions that take a bounded time."""
        part: list[list[Dispatch]] = []
        work = 0.0
        for phase in phases:
            if part and not self.has_additions:
                yield part
                part, work = [], 0.0
            part.append([])
            for one in phase:
                if work and work + one.work > MOST_WORK:
                    yield [some for some in part if some]
                    part, work = [[]], 0.0
                part[-1].append(one)
                work += one.work
        if part:
            yield part

    def _sequence(self, phases: Sequence[Sequence[Dispatch]]) -> Any:
        sequence = self._manager.sequence()
        for phase in phases:
            if self.has_additions:
                sequence.record(self._kp.LlmdBarrier())
            for one in phase:
                sequence.record(self._operation(one))
        if self.has_additions:
            sequence.record(self._kp.LlmdBarrier())  # the host reads what was written
        return sequence

    def _operation(self, one: Dispatch) -> Any:
        constants = np.array(one.constants, np.uint32)
        if self.has_additions:
            return self._kp.LlmdDispatch(self._algorithm(one, None), constants.tobytes(), one.groups)
        return self._kp.OpAlgoDispatch(self._algorithm(one, one.groups), constants)

    def _algorithm(self, one: Dispatch, groups: tuple[int, int, int] | None) -> Any:
        """Return the prepared shader; Kompute binds its buffers, and without additions its work groups."""
        key = (one.shader, tuple(buffer.number for buffer in one.buffers), len(one.constants), groups)
        if key not in self._algorithms:
            self._algorithms[key] = self._manager.algorithm(
                [buffer.tensor for buffer in one.buffers],
                spirv(one.shader.name),
                groups or (1, 1, 1),
                np.array(one.shader.constants, np.uint32),
                np.zeros(len(one.constants), np.uint32),
            )
        return self._algorithms[key]

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the errors of Vulkan that Kompute passes on into those of llmd."""
        try:
            yield
        except LlmdError:
            raise
        except (RuntimeError, MemoryError) as error:
            raise self._failure(str(error)) from error

    def _failure(self, text: str) -> DeviceError:
        if "DeviceLost" in text:
            return self.lost("the driver lost the device")
        if "OutOfDeviceMemory" in text or "OutOfHostMemory" in text or "bad_alloc" in text or not text:
            return DeviceMemoryError(f"{self.name} has too little memory", hint="lower --kv-memory")
        return DeviceError(f"{self.name} failed: {text}", hint="see whether `vulkaninfo` works")


def kompute() -> Any:
    """Return the module ``kp``.

    Raises:
        DeviceError: it is missing.
    """
    try:
        import kp
    except ImportError as error:
        raise DeviceError(
            f"Kompute cannot be imported: {error}",
            hint=f"build it with `{shlex.quote(sys.executable)} -m llmd_backend_vulkan.build_kompute`",
        ) from error
    return kp
