"""A runtime whose device is the host: it runs CUDA kernels thread by thread, and checks what they do."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import DeviceError, DeviceLostError, MemoryBudgetError
from llmd_backend_cuda.runtime import (
    CopyStream,
    Event,
    Graph,
    Kernel,
    KernelSpec,
    Launch,
    Memory,
    Runtime,
    Timestamp,
)
from tests.cuda.simt.build import KERNELS, compile_kernels, engine
from tests.cuda.simt.copies import SimtCopies, SimtCopyEvent
from tests.cuda.simt.events import SimtEvent, SimtTimestamp
from tests.cuda.simt.places import source_line

MOST_SHARED_BYTES = 227 * 1024
"""Dynamic shared memory of a block on an H100."""
_ORDERS = {"forward": -1, "reverse": -2}
_ALL: weakref.WeakSet[SimtRuntime] = weakref.WeakSet()
_RUNNING = threading.Lock()  # the engine runs one launch at a time


class _Request(ctypes.Structure):
    """``struct Request`` of ``launch.hpp``."""

    _fields_ = (
        ("args", ctypes.c_void_p),
        ("args_bytes", ctypes.c_int),
        ("grid", ctypes.c_int * 3),
        ("threads", ctypes.c_int),
        ("shared_bytes", ctypes.c_int),
        ("overlaps", ctypes.c_int),
        ("order", ctypes.c_longlong),
        ("limit_s", ctypes.c_double),
    )


class SimtKernel:
    """A kernel compiled for the host."""

    def __init__(self, spec: KernelSpec, library: Path) -> None:
        self.spec = spec
        self.binary = library
        try:
            self.run = ctypes.CDLL(str(library))[f"run_{spec.name}"]
        except AttributeError:
            raise DeviceError(f"there is no kernel {spec.name} in {spec.source}.cu") from None
        self.run.restype = ctypes.c_char_p
        self.run.argtypes = (ctypes.POINTER(_Request),)


class SimtMemory:
    """Memory between guard pages. All its bytes are 0xff at first."""

    def __init__(self, runtime: SimtRuntime, num_bytes: int) -> None:
        pointer = engine().simt_allocate(num_bytes)
        if pointer is None:
            raise MemoryBudgetError(f"the host has no {num_bytes} bytes")
        self.pointer: int = pointer
        self.num_bytes = num_bytes
        self._runtime = runtime
        runtime.used_bytes += num_bytes

    def __del__(self) -> None:
        if hasattr(self, "pointer"):
            self._runtime.release(self.pointer, self.num_bytes)


class SimtGraph:
    """Launches and copies that were recorded."""

    def __init__(self, runtime: SimtRuntime, calls: Sequence[Callable[[], None]]) -> None:
        self._runtime = runtime
        self._calls = tuple(calls)

    def launch(self) -> None:
        """Run them in the order of the recording."""
        self._runtime.refuse_in_capture("the launch of a graph")
        for call in self._calls:
            self._runtime.enqueue(call)


class SimtRuntime:
    """Implements ``Runtime`` on the host.

    ``order`` is that of the blocks, and of the threads between barriers: ``forward``, ``reverse``, or the
    seed of a shuffled order. ``folders`` have kernel files besides those of the backend. With ``deferred``,
    what is called runs only when the host waits, as late as a device may run it. A launch that takes more
    than ``limit_s`` of the processor's time is an error, as is all that a GPU leaves undefined and the engine
    notices.
    """

    def __init__(
        self,
        *,
        num_processors: int = 4,
        memory_bytes: int = 4 << 30,
        order: str | int = 1,
        folders: Sequence[Path] = (),
        deferred: bool = False,
        limit_s: float = 20.0,
        name: str = "simulated",
    ) -> None:
        self.name = name
        self.num_processors = num_processors
        self.shared_bytes = MOST_SHARED_BYTES
        self.warpgroups = False
        self.memory_bytes = memory_bytes
        self.used_bytes = 0
        self.capturing = False
        self._capturer = 0
        self.order = _ORDERS[order] if isinstance(order, str) else order
        self._folders = (*folders, KERNELS)
        self._deferred = deferred
        self._limit_s = limit_s
        self._pending: deque[Callable[[], None]] = deque()
        self._recorded: list[Callable[[], None]] = []
        self._kernels: dict[KernelSpec, SimtKernel] = {}
        self._pinned: list[NDArray[np.uint8]] = []
        self._copies: weakref.WeakSet[SimtCopies] = weakref.WeakSet()
        self._has_waited = False
        self.is_peer = True
        _ALL.add(self)

    def kernel(self, spec: KernelSpec) -> Kernel:
        """Return a compiled kernel."""
        found = self._kernels.get(spec)
        if found is None:
            self.refuse_in_capture("compiling a kernel")
            found = SimtKernel(spec, compile_kernels(spec.source, spec.defines, self._folders))
            self._kernels[spec] = found
        return found

    def allocate(self, num_bytes: int) -> Memory:
        """Take memory whose bytes are all 0xff.

        Raises:
            MemoryBudgetError: there is not enough.
        """
        self.refuse_in_capture("allocating memory")
        if num_bytes > self.free_bytes():
            raise MemoryBudgetError(f"{num_bytes} bytes are asked for, {self.free_bytes()} are free")
        return SimtMemory(self, num_bytes)

    def pinned(self, num_bytes: int) -> NDArray[np.uint8]:
        """Return host memory that stays as long as the runtime."""
        self.refuse_in_capture("allocating pinned memory")
        array = np.full(num_bytes, 0xFF, np.uint8)
        self._pinned.append(array)
        return array

    def mapped_address(self, array: NDArray[np.generic]) -> int:
        """Return the address of a pinned array: kernels read all memory of the host."""
        if not self.is_pinned(array):
            raise DeviceError("kernels read pinned memory of the host only")
        return _address(array)

    def upload(self, memory: Memory, offset: int, array: NDArray[np.generic]) -> None:
        """Copy an array to memory."""
        self._copy(memory.pointer + offset, _address(array), array, memory, offset)

    def download(self, array: NDArray[np.generic], memory: Memory, offset: int) -> None:
        """Copy memory to an array."""
        self._copy(_address(array), memory.pointer + offset, array, memory, offset)

    def reads(self, other: Runtime) -> bool:
        """Whether it copies from the memory of another card."""
        return other is self or self.is_peer

    def copy(self, memory: Memory, source: Memory, num_bytes: int, owner: Runtime) -> None:
        """Copy memory to memory, of this card or of two."""
        if num_bytes > min(memory.num_bytes, source.num_bytes) or not self.reads(owner):
            raise DeviceError("memory cannot be copied")
        self.enqueue(lambda: _copy_memory(memory, source, num_bytes))

    def fill_zero(self, memory: Memory) -> None:
        """Set all bytes to 0."""
        self.enqueue(lambda: _fill_zero(memory))

    def launch(self, launch: Launch) -> None:
        """Run a kernel; its arguments may change afterwards."""
        _check(launch)
        if launch.overlaps and self._has_waited:
            raise DeviceError(
                f"{launch.kernel.spec.name} may begin before the copy that was waited for has ended"
            )
        self._has_waited = False
        if launch.overlaps:
            engine().simt_track_writes()
        args = bytes(launch.args)
        self.enqueue(lambda: self._run(launch, args))

    def capture(self, run: Callable[[], None]) -> Graph:
        """Record what ``run`` launches and copies."""
        self.refuse_in_capture("another capture")
        self.capturing, self._capturer, self._recorded = True, threading.get_ident(), []
        try:
            run()
        finally:
            self.capturing = False
        return SimtGraph(self, self._recorded)

    def record(self) -> Event:
        """Return the point of the stream after everything that was called before."""
        return SimtEvent(self)

    def timestamp(self) -> Timestamp:
        """Return the same point, with its time."""
        self.refuse_in_capture("a timestamp")
        return SimtTimestamp(self)

    def copy_stream(self) -> CopyStream:
        """Return a new stream of copies."""
        self.refuse_in_capture("a new stream")
        copies = SimtCopies(self)
        self._copies.add(copies)
        return copies

    def wait_for(self, event: Event) -> None:
        """Let what follows run after the copies, or the work of another card, up to a point."""
        if isinstance(event, SimtEvent):
            self.enqueue(event.run)
            return
        assert isinstance(event, SimtCopyEvent)
        self.refuse_in_capture("waiting for another stream")
        self._has_waited = True
        self.enqueue(lambda: event.copies.end(event))

    def begin_copies(self) -> None:
        """Begin the copies that waited for a point that is reached."""
        for copies in self._copies:
            copies.begin()

    def synchronize(self) -> None:
        """Run what was deferred."""
        self.refuse_in_capture("waiting for the stream")
        self.reach_end()

    def lost(self, what: str) -> DeviceLostError:
        """Return the error of a device that does not answer."""
        return DeviceLostError(what, devices=(self.name,))

    def free_bytes(self) -> int:
        """Return the bytes that are left of the budget."""
        return self.memory_bytes - self.used_bytes

    def close(self) -> None:
        """Forget the kernels."""
        self._kernels.clear()

    def enqueue(self, call: Callable[[], None]) -> None:
        """Record a call, or run it now or when the host waits."""
        if self.capturing:
            self._recorded.append(call)
        elif self._deferred:
            self._pending.append(call)
        else:
            call()

    def run_pending(self, until: SimtEvent | None = None) -> None:
        """Run what was deferred, all of it or up to a point."""
        while self._pending and not (until and until.is_reached):
            self._pending.popleft()()

    def reach_end(self, point: SimtEvent | None = None) -> None:
        """Run what was deferred, all of it or up to a point; what follows reads what launches wrote."""
        self.run_pending(point)
        engine().simt_forget_writes()

    def release(self, pointer: int, num_bytes: int) -> None:
        """Give memory back after the launches that were called before."""
        self.used_bytes -= num_bytes
        if self._pending:
            self._pending.append(lambda: engine().simt_release(pointer))
        else:
            engine().simt_release(pointer)

    def refuse_in_capture(self, what: str) -> None:
        """Raise an error if this thread captures a graph. Others may wait meanwhile, as on a card."""
        if self.capturing and threading.get_ident() == self._capturer:
            raise DeviceError(f"{what} is not allowed while a graph is captured")

    def check_copy(self, array: NDArray[np.generic], memory: Memory, offset: int) -> None:
        """Refuse a copy that a device refuses."""
        if not array.flags.c_contiguous:
            raise DeviceError("only a C-contiguous array can be copied")
        if offset < 0 or offset + array.nbytes > memory.num_bytes:
            raise DeviceError(
                f"a copy of {array.nbytes} bytes at {offset} is beyond {memory.num_bytes} bytes of memory"
            )

    def _copy(self, to: int, source: int, array: NDArray[np.generic], memory: Memory, offset: int) -> None:
        self.check_copy(array, memory, offset)
        pinned = self.is_pinned(array)
        if not pinned:
            self.refuse_in_capture("a copy that is not of pinned memory")
        self.enqueue(lambda: _copy_bytes(to, source, array, memory))
        if not pinned:
            self.run_pending()

    def is_pinned(self, array: NDArray[np.generic]) -> bool:
        """Return whether an array is in pinned memory, which all cards share."""
        begin = _address(array)
        return any(
            _address(one) <= begin and begin + array.nbytes <= _address(one) + one.nbytes
            for runtime in _ALL
            for one in runtime._pinned
        )

    def _run(self, launch: Launch, args: bytes) -> None:
        kernel = launch.kernel
        assert isinstance(kernel, SimtKernel)
        buffer = ctypes.create_string_buffer(args, len(args))
        request = _Request(
            ctypes.addressof(buffer),
            len(args),
            launch.grid,
            launch.threads,
            launch.shared_bytes,
            launch.overlaps,
            self.order,
            self._limit_s,
        )
        with _RUNNING:
            error = kernel.run(request)
        if error is not None:
            text = str(error, "utf-8")
            raise DeviceError(f"{text}{source_line(kernel.binary, text)}")


def _address(array: NDArray[np.generic]) -> int:
    return int(array.ctypes.data)


def _copy_bytes(to: int, source: int, array: NDArray[np.generic], memory: Memory) -> None:
    """Copy an array from or to memory; both are referenced until then."""
    engine().simt_allow_host(memory.pointer)
    ctypes.memmove(to, source, array.nbytes)


def _copy_memory(memory: Memory, source: Memory, num_bytes: int) -> None:
    engine().simt_allow_host(memory.pointer)
    engine().simt_allow_host(source.pointer)
    ctypes.memmove(memory.pointer, source.pointer, num_bytes)


def _fill_zero(memory: Memory) -> None:
    engine().simt_allow_host(memory.pointer)
    ctypes.memset(memory.pointer, 0, memory.num_bytes)


def _check(launch: Launch) -> None:
    """Refuse what a device refuses."""
    name = launch.kernel.spec.name
    x, y, z = launch.grid
    if not (0 < x < 2**31 and 0 < y < 2**16 and 0 < z < 2**16):
        raise DeviceError(f"{name} cannot be launched with a grid of {launch.grid}")
    if launch.threads % 32 or not 0 < launch.threads <= 1024:
        raise DeviceError(f"{name} cannot be launched with {launch.threads} threads")
    if not 0 <= launch.shared_bytes <= MOST_SHARED_BYTES:
        raise DeviceError(f"{name} cannot have {launch.shared_bytes} bytes of shared memory")
