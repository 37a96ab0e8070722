"""A card and one stream for `llmd_backend_cuda.runtime.Runtime`.

Memory is taken from the card one range at a time, without a pool: what is freed is free for other programs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llmd.api.byte_size import format_bytes
from llmd.api.errors import DeviceError, DeviceLostError, DeviceMemoryError, MemoryBudgetError
from llmd_backend_cuda.card import Card, CardMemory, Owned, PinnedMemory, is_pinned
from llmd_backend_cuda.card_copies import CardCopies, CardStream, address_of, check_copy
from llmd_backend_cuda.driver import Driver, PreparedLaunch, overlapping
from llmd_backend_cuda.kernel_cache import KernelCache
from llmd_backend_cuda.runtime import KernelSpec, Launch, Memory, Runtime

LONGEST_WAIT_S = 600.0
"""Seconds that `CupyRuntime.synchronize` and copies of ordinary memory wait for the card."""

_MOST_PREPARED = 8192
"""Launches in the driver's form that are kept, about a kilobyte each."""


class CupyGraph(Owned):
    """Captured launches and copies. ``used`` is kept as long as the graph: it runs the kernels in there."""

    def __init__(self, card: Card, graph: int, stream: Owned, used: object) -> None:
        super().__init__(card, graph, card.api.graphExecDestroy)
        self._stream = stream
        self._used = used

    def launch(self) -> None:
        """Run it on the stream.

        Raises:
            DeviceLostError: the card is gone, or an earlier kernel failed.
            DeviceMemoryError: the driver has too little memory for it.
        """
        self.card.call(self.card.api.graphLaunch, self.value, self._stream.value)


class CupyModule:
    """The kernels of a source file with some definitions, which may still be compiled."""

    def __init__(self, card: Card, code: Future[bytes]) -> None:
        self._card = card
        self._code = code
        self._loaded: Owned | None = None

    def load(self) -> int:
        """Wait for the compiler, load the code, and return the driver's module.

        Raises:
            MemoryBudgetError: the card has no memory left for it.
            DeviceError: the compiler or the driver refused it.
        """
        if self._loaded is None:
            driver = self._card.driver
            code = self._code.result()
            try:
                module = self._card.call(driver.load, code)
            except DeviceMemoryError as error:
                raise MemoryBudgetError(
                    f"no memory is left for kernels: {error.message}", hint=error.hint
                ) from error
            self._loaded = Owned(self._card, module, driver.unload)
        return self._loaded.value


class CupyKernel:
    """A kernel, which may still be compiled."""

    def __init__(self, spec: KernelSpec, card: Card, module: CupyModule) -> None:
        self.spec = spec
        self._card = card
        self._module = module
        self._function = self._most_shared = 0

    def load(self) -> int:
        """Wait for the compiler, load the code, and return the driver's function.

        Raises:
            DeviceError: the compiler or the driver refused it.
        """
        if not self._function:
            call, driver = self._card.call, self._card.driver
            function = call(driver.function, self._module.load(), self.spec.name)
            self._most_shared = call(driver.most_shared, function)
            self._function = function
        return self._function

    def allow_shared(self, num_bytes: int) -> None:
        """Allow launches with so much dynamic shared memory.

        Raises:
            DeviceError: a block of this card cannot have that much.
        """
        function = self.load()
        if num_bytes > self._most_shared:
            self._card.call(self._card.driver.allow_shared, function, num_bytes)
            self._most_shared = num_bytes


class CupyRuntime(CardStream):
    """`llmd_backend_cuda.runtime.Runtime` on a card.

    One thread at a time uses it, which need not be the one that made it. By default, ``cache`` is in the
    user's folder. Tests replace CuPy's bindings (``api``) and the driver.

    Raises:
        DeviceError: there is no such card, no driver or no NVRTC.
    """

    def __init__(
        self,
        device_index: int,
        cache: KernelCache | None = None,
        *,
        api: Any = None,
        driver: Driver | None = None,
    ) -> None:
        if api is None:
            from cupy_backends.cuda.api import runtime

            api = runtime
        try:
            card = Card(device_index, api, driver or Driver())
        except (OSError, AttributeError) as error:
            raise DeviceError(f"the NVIDIA driver is missing: {error}", hint="install a new one") from error
        properties = card.call(api.getDeviceProperties, device_index)
        self.num_processors: int = properties["multiProcessorCount"]
        self.shared_bytes: int = properties["sharedMemPerBlockOptin"]
        self.warpgroups = False  # until a card has shown that the bits are the same: bench/gpu_products.py
        self.capability: tuple[int, int] = (properties["major"], properties["minor"])
        self._cache = cache or KernelCache(self.capability)
        super().__init__(card)
        self._compilers = ThreadPoolExecutor(len(os.sched_getaffinity(0)), "llmd-nvrtc")
        self._modules: dict[tuple[str, object], CupyModule] = {}
        self._kernels: dict[KernelSpec, CupyKernel] = {}
        self._unloaded: list[CupyKernel] = []
        self._prepared: dict[int, tuple[Launch, PreparedLaunch]] = {}
        self._is_capturing = False
        self._can_overlap = properties["major"] >= 9
        self._readable: dict[int, bool] = {}

    def kernel(self, spec: KernelSpec) -> CupyKernel:
        """Return a kernel. It is compiled on another thread if it was not compiled before.

        `capture`, `synchronize` and its first launch wait for the compiler, and raise its errors. So whoever
        asks for all kernels first has them compiled at the same time, on all processors.
        """
        if spec not in self._kernels:
            key = (spec.source, spec.defines)
            if key not in self._modules:
                self._modules[key] = CupyModule(self._card, self._compilers.submit(self._cache.code, spec))
            self._kernels[spec] = CupyKernel(spec, self._card, self._modules[key])
            self._unloaded.append(self._kernels[spec])
        return self._kernels[spec]

    def allocate(self, num_bytes: int) -> CardMemory:
        """Take memory; its contents are undefined.

        Raises:
            MemoryBudgetError: there is not enough.
            DeviceLostError: the card is gone.
        """
        pointer = self._take(self._card.api.malloc, "memory", num_bytes)
        return CardMemory(self._card, pointer, num_bytes)

    def pinned(self, num_bytes: int) -> NDArray[np.uint8]:
        """Return host memory that copies need not wait for; freed with the last array that refers to it.

        Raises:
            MemoryBudgetError: the driver does not get that much.
            DeviceLostError: the card is gone.
        """
        address = self._take(self._card.api.hostAlloc, "pinned main memory", num_bytes, 0)
        return np.asarray(PinnedMemory(self._card, address, num_bytes))

    def mapped_address(self, array: NDArray[np.generic]) -> int:
        """Return the address at which kernels read a pinned array: with unified addressing, its own.

        Raises:
            ValueError: the array is not pinned.
        """
        if not is_pinned(array):
            raise ValueError("kernels read pinned arrays only")
        return address_of(array)

    def upload(self, memory: Memory, offset: int, array: NDArray[np.generic]) -> None:
        """Copy a C-contiguous host array to memory; unless it is pinned, wait until it may be changed.

        Raises:
            ValueError: it does not fit, or is not contiguous, or is not pinned during a capture.
            DeviceError: the card failed.
        """
        self._copy(memory.pointer + offset, address_of(array), memory, offset, array, is_upload=True)

    def download(self, array: NDArray[np.generic], memory: Memory, offset: int) -> None:
        """Copy memory to a C-contiguous host array; unless it is pinned, wait for the copy.

        Raises:
            ValueError: there is not as much, or it is not contiguous, or is not pinned during a capture.
            DeviceError: the card failed.
        """
        self._copy(address_of(array), memory.pointer + offset, memory, offset, array, is_upload=False)

    def reads(self, other: Runtime) -> bool:
        """Whether the card can copy from the memory of another one: they are peers.

        Raises:
            DeviceLostError: the card is gone.
        """
        assert isinstance(other, CupyRuntime), "the memory is of another runtime"
        card, index = self._card, other.card.index
        if index not in self._readable:
            is_peer = index == card.index or bool(card.call(card.api.deviceCanAccessPeer, card.index, index))
            if is_peer and index != card.index:
                self._enable(index)
            self._readable[index] = is_peer
        return self._readable[index]

    def copy(self, memory: Memory, source: Memory, num_bytes: int, owner: Runtime) -> None:
        """Copy from memory of ``owner``, this card or one that it `reads`, to memory of this one.

        Raises:
            ValueError: one of them has not as many bytes.
            DeviceError: one of the cards failed.
        """
        assert isinstance(owner, CupyRuntime), "the memory is of another runtime"
        if num_bytes > min(memory.num_bytes, source.num_bytes):
            raise ValueError(
                f"no {num_bytes} bytes are in memory of {source.num_bytes} and {memory.num_bytes}"
            )
        card, other = self._card, owner.card
        places = (memory.pointer, card.index, source.pointer, other.index)
        of_another = None if other is card else other
        card.call(card.api.memcpyPeerAsync, *places, num_bytes, self._stream.value, other=of_another)

    def _enable(self, index: int) -> None:
        """Let the card read the memory of a peer directly; if it cannot, copies take a detour."""
        try:
            self._card.call(self._card.api.deviceEnablePeerAccess, index)
        except DeviceLostError:
            raise
        except DeviceError:
            return

    def fill_zero(self, memory: Memory) -> None:
        """Set all bytes to 0.

        Raises:
            DeviceError: the card failed.
        """
        self._card.call(self._card.api.memsetAsync, memory.pointer, 0, memory.num_bytes, self._stream.value)

    def launch(self, launch: Launch) -> None:
        """Run a kernel.

        Raises:
            DeviceError: the card refused it, or failed earlier.
        """
        known = self._prepared.get(id(launch))
        prepared = known[1] if known else self._prepare(launch)
        self._card.call(self._card.driver.launch, prepared)

    def capture(self, run: Callable[[], None]) -> CupyGraph:
        """Record what ``run`` launches and copies, without running it.

        Raises:
            DeviceError: the card refused it, or a kernel does not compile.
        """
        self._load_kernels()
        card, api, stream = self._card, self._card.api, self._stream.value
        # Relaxed: memory may be taken and freed meanwhile, by this thread and by others.
        card.call(api.streamBeginCapture, stream, api.streamCaptureModeRelaxed)
        self._is_capturing = True
        try:
            run()
        except BaseException:
            with contextlib.suppress(DeviceError):
                card.call(api.graphDestroy, card.call(api.streamEndCapture, stream))
            raise
        finally:
            self._is_capturing = False
        recorded = Owned(card, card.call(api.streamEndCapture, stream), api.graphDestroy)
        graph = CupyGraph(card, card.call(api.graphInstantiate, recorded.value), self._stream, self._modules)
        card.call(api.graphUpload, graph.value, stream)  # else the first launch does it
        return graph

    def copy_stream(self) -> CardCopies:
        """Return a new stream of copies.

        Raises:
            DeviceError: the card failed.
        """
        return CardCopies(self._card)

    def synchronize(self) -> None:
        """Wait until all kernels are compiled and loaded, and the stream is idle.

        Raises:
            DeviceLostError: the card is gone, or is busy for longer than `LONGEST_WAIT_S`.
            DeviceError: a kernel does not compile.
        """
        self._load_kernels()
        if not self.record().wait(LONGEST_WAIT_S):
            raise self._card.lost(f"it did not finish within {LONGEST_WAIT_S:.0f} s")

    def free_bytes(self) -> int:
        """Return the bytes of memory that are free, whoever uses the rest.

        Raises:
            DeviceLostError: the card is gone.
        """
        free_bytes: int = self._card.call(self._card.api.memGetInfo)[0]
        return free_bytes

    def lost(self, what: str) -> DeviceLostError:
        """Return the error of a card that does not answer. Nothing is freed from now on: that would wait."""
        return self._card.lost(what)

    def close(self) -> None:
        """Free the stream and the kernels once nothing refers to them. Closing twice is allowed.

        Memory, graphs and events may be freed later.
        """
        self._prepared, self._kernels, self._modules, self._unloaded = {}, {}, {}, []
        self._compilers.shutdown(wait=False, cancel_futures=True)

    def _load_kernels(self) -> None:
        """Load all kernels that were asked for, so that no later step waits for the compiler."""
        while self._unloaded:
            self._unloaded.pop().load()

    def _prepare(self, launch: Launch) -> PreparedLaunch:
        """Return the driver's form of a launch, and keep it for the next time."""
        kernel = launch.kernel
        assert isinstance(kernel, CupyKernel), "the kernel is of another runtime"
        kernel.allow_shared(launch.shared_bytes)
        attributes = (overlapping(),) if launch.overlaps and self._can_overlap else ()
        prepared = PreparedLaunch(
            kernel.load(),
            launch.grid,
            launch.threads,
            launch.args,
            launch.shared_bytes,
            self._stream.value,
            attributes,
        )
        if len(self._prepared) >= _MOST_PREPARED:
            del self._prepared[next(iter(self._prepared))]  # the oldest
        self._prepared[id(launch)] = (launch, prepared)
        return prepared

    def _take(self, function: Callable[..., int], what: str, num_bytes: int, *more: int) -> int:
        """Return the address of new memory; at least one byte, so that there is an address."""
        try:
            address: int = self._card.call(function, max(num_bytes, 1), *more)
        except DeviceMemoryError as error:
            free = f"; {format_bytes(self.free_bytes())} of the card are free" if what == "memory" else ""
            raise MemoryBudgetError(
                f"{self._card.name} has no {format_bytes(num_bytes)} of {what} left{free}",
                hint="lower --kv-memory, --slots or --max-ctx, or move layers to another device with --split",
            ) from error
        return address

    def _copy(
        self,
        to: int,
        source: int,
        memory: Memory,
        offset: int,
        array: NDArray[np.generic],
        *,
        is_upload: bool,
    ) -> None:
        check_copy(memory, offset, array)
        if not array.nbytes:
            return
        waits = not is_pinned(array)
        if waits and self._is_capturing:
            raise ValueError("only pinned arrays can be copied in a graph")
        api = self._card.api
        kind = api.memcpyHostToDevice if is_upload else api.memcpyDeviceToHost
        self._card.call(api.memcpyAsync, to, source, array.nbytes, kind, self._stream.value)
        if waits:
            self.synchronize()
