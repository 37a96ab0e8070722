"""What the backend needs of a GPU: memory, kernels, launches, graphs and events on one stream, and copies.

`llmd_backend_cuda.cupy_runtime` has the real one. Tests run the same kernels on the host.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import DeviceLostError


class KernelSpec(msgspec.Struct, frozen=True):
    """A kernel of a source file, compiled with definitions."""

    source: str
    """Name of the file in ``kernels/``, without ``.cu``."""
    name: str
    """Name of the kernel in the file."""
    defines: tuple[tuple[str, int | str], ...] = ()
    """Macros and their values, sorted by name."""

    @classmethod
    def of(cls, source: str, name: str, defines: Mapping[str, int | str] | None = None) -> KernelSpec:
        """Return the spec with the definitions in order."""
        return cls(source, name, tuple(sorted((defines or {}).items())))


class Memory(Protocol):
    """A range of the device's memory, freed with the last reference to it."""

    pointer: int
    """Address on the device, at least 256-byte aligned."""
    num_bytes: int


class Kernel(Protocol):
    """A compiled kernel, ready to be launched."""

    spec: KernelSpec


class Launch(msgspec.Struct, frozen=True):
    """A kernel with everything that its launch needs."""

    kernel: Kernel
    grid: tuple[int, int, int]
    """Blocks in x, y and z."""
    threads: int
    """Threads of a block, a multiple of 32."""
    args: ctypes.Structure
    """The kernel's only parameter, passed by value. Addresses in it stay valid as long as the launch."""
    shared_bytes: int = 0
    """Dynamic shared memory of a block."""
    overlaps: bool = False
    """The kernel may begin before the one before it has ended: it calls ``wait_for_previous_kernel``."""


class Event(Protocol):
    """A point of the stream."""

    def wait(self, timeout_s: float) -> bool:
        """Wait until the stream has reached it; return False if that took longer."""
        ...


class Timestamp(Event, Protocol):
    """A point of the stream whose time is kept."""

    def seconds_after(self, earlier: Timestamp) -> float:
        """Return the seconds between two points that the stream has reached."""
        ...


class CopyStream(Protocol):
    """A stream of copies to the device, which run in order while the runtime's stream runs as well."""

    def upload(self, memory: Memory, offset: int, array: NDArray[np.generic]) -> None:
        """Begin to copy a pinned C-contiguous array to memory."""
        ...

    def wait_for(self, event: Event) -> None:
        """Let what follows begin once the runtime's stream has reached a point of it."""
        ...

    def record(self) -> Event:
        """Return the point after everything that was called before."""
        ...

    def timestamp(self) -> Timestamp:
        """Return the same point, with its time."""
        ...


class Graph(Protocol):
    """Captured launches and copies, run as one."""

    def launch(self) -> None:
        """Run it on the stream."""
        ...


class Runtime(Protocol):
    """A device and one stream. Everything runs in order of the calls, which do not wait, except as said.

    Only a `CopyStream` runs at the same time.
    """

    num_processors: int
    """Multiprocessors of the device."""
    shared_bytes: int
    """Most shared memory of a block."""
    warpgroups: bool
    """Whether ``gemm_warpgroup.cu`` multiplies many rows: the card has its instructions, and is trusted."""

    def kernel(self, spec: KernelSpec) -> Kernel:
        """Return a compiled kernel; compile it if it was not compiled before."""
        ...

    def allocate(self, num_bytes: int) -> Memory:
        """Take memory; its contents are undefined.

        Raises:
            MemoryBudgetError: there is not enough.
        """
        ...

    def pinned(self, num_bytes: int) -> NDArray[np.uint8]:
        """Return host memory that copies need not wait for."""
        ...

    def mapped_address(self, array: NDArray[np.generic]) -> int:
        """Return the address at which kernels read a pinned array."""
        ...

    def upload(self, memory: Memory, offset: int, array: NDArray[np.generic]) -> None:
        """Copy a C-contiguous host array to memory; unless it is pinned, wait until it may be changed."""
        ...

    def download(self, array: NDArray[np.generic], memory: Memory, offset: int) -> None:
        """Copy memory to a C-contiguous host array; unless it is pinned, wait for the copy."""
        ...

    def reads(self, other: Runtime) -> bool:
        """Whether the device can copy from the memory of another one."""
        ...

    def copy(self, memory: Memory, source: Memory, num_bytes: int, owner: Runtime) -> None:
        """Copy from memory of ``owner``, this device or one that it `reads`, to memory of this one."""
        ...

    def fill_zero(self, memory: Memory) -> None:
        """Set all bytes to 0."""
        ...

    def launch(self, launch: Launch) -> None:
        """Run a kernel."""
        ...

    def capture(self, run: Callable[[], None]) -> Graph:
        """Record what ``run`` launches and copies, without running it."""
        ...

    def record(self) -> Event:
        """Return the point of the stream after everything that was called before."""
        ...

    def timestamp(self) -> Timestamp:
        """Return the same point, with its time."""
        ...

    def copy_stream(self) -> CopyStream:
        """Return a new stream of copies."""
        ...

    def wait_for(self, event: Event) -> None:
        """Let what follows begin once a stream of copies, or that of another card, has reached a point."""
        ...

    def synchronize(self) -> None:
        """Wait until the stream is idle."""
        ...

    def lost(self, what: str) -> DeviceLostError:
        """Return the error of a device that does not answer; nothing of it is freed from now on."""
        ...

    def free_bytes(self) -> int:
        """Return the bytes of memory that are free, whoever uses the rest."""
        ...

    def close(self) -> None:
        """Free the stream and the kernels once nothing refers to them. Closing twice is allowed.

        Memory and graphs are freed with the last reference to them.
        """
        ...
