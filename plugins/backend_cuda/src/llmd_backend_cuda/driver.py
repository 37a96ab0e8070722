"""The part of the CUDA driver that CuPy does not bind, or binds at a higher cost: modules and launches.

All launches go through `Driver.launch`, which is ``cuLaunchKernelEx`` of ``libcuda.so.1``: besides sizes, it
takes attributes, so that a kernel may begin before its predecessor ends, or have clusters of blocks. Modules,
functions and streams are the same objects as those of CuPy.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Sequence

LIBRARY = "libcuda.so.1"

# Numbers of cuda.h.
_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
_COOPERATIVE = 2
_CLUSTER_DIMENSION = 4
_PROGRAMMATIC_STREAM_SERIALIZATION = 6


class _AttributeValue(ctypes.Union):
    _fields_ = (("flag", ctypes.c_int), ("size", ctypes.c_uint * 3), ("padding", ctypes.c_char * 64))


class LaunchAttribute(ctypes.Structure):
    """``CUlaunchAttribute``."""

    _fields_ = (("id", ctypes.c_int), ("padding", ctypes.c_char * 4), ("value", _AttributeValue))


class LaunchConfig(ctypes.Structure):
    """``CUlaunchConfig``."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("num_attributes", ctypes.c_uint),
    )


def overlapping() -> LaunchAttribute:
    """The kernel may begin before the kernel before it in the stream has ended.

    It must wait for that kernel with ``griddepcontrol.wait`` before it reads or writes what that kernel uses.
    Compute capability 9.0 and later.
    """
    return LaunchAttribute(_PROGRAMMATIC_STREAM_SERIALIZATION, value=_AttributeValue(flag=1))


def cooperative() -> LaunchAttribute:
    """All blocks of the kernel run at the same time, so that they may wait for each other.

    The launch fails if there is no room for all of them.
    """
    return LaunchAttribute(_COOPERATIVE, value=_AttributeValue(flag=1))


def cluster(x: int, y: int = 1, z: int = 1) -> LaunchAttribute:
    """Clusters of ``x · y · z`` blocks see each other's shared memory. Compute capability 9.0 and later."""
    return LaunchAttribute(_CLUSTER_DIMENSION, value=_AttributeValue(size=(x, y, z)))


class DriverError(RuntimeError):
    """A call of the driver failed. ``status`` has the number of the error, which the CUDA runtime shares."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class PreparedLaunch:
    """A launch in the form of the driver, made once and used for each run."""

    __slots__ = ("_kept", "config", "function", "parameters")

    def __init__(
        self,
        function: int,
        grid: tuple[int, int, int],
        threads: int,
        args: ctypes.Structure,
        shared_bytes: int,
        stream: int,
        attributes: Sequence[LaunchAttribute] = (),
    ) -> None:
        listed = (LaunchAttribute * len(attributes))(*attributes)
        config = LaunchConfig(grid, (threads, 1, 1), shared_bytes, stream, listed, len(attributes))
        addresses = (ctypes.c_void_p * 1)(ctypes.addressof(args))
        self.config = ctypes.byref(config)
        self.function = ctypes.c_void_p(function)
        self.parameters = ctypes.byref(addresses)
        self._kept = (config, listed, addresses, args)


class Driver:
    """Calls of the CUDA driver for the context that is current in the calling thread.

    Raises:
        OSError: there is no driver.
    """

    def __init__(self, library: str = LIBRARY) -> None:
        self._library = ctypes.CDLL(library)
        self._launch = self._library.cuLaunchKernelEx

    def launch(self, prepared: PreparedLaunch) -> None:
        """Run a kernel.

        Raises:
            DriverError: it could not be started, or an earlier one failed.
        """
        if status := self._launch(prepared.config, prepared.function, prepared.parameters, None):
            raise self._failure(status)

    def load(self, image: bytes) -> int:
        """Return a module of a cubin or of PTX.

        Raises:
            DriverError: the driver refuses it.
        """
        module = ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(image))
        return module.value or 0

    def unload(self, module: int) -> None:
        """Free a module.

        Raises:
            DriverError: an earlier kernel failed.
        """
        self._call("cuModuleUnload", ctypes.c_void_p(module))

    def function(self, module: int, name: str) -> int:
        """Return a kernel of a module.

        Raises:
            DriverError: it has no kernel of this name.
        """
        function = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(function), ctypes.c_void_p(module), name.encode())
        return function.value or 0

    def most_shared(self, function: int) -> int:
        """Return the most bytes of dynamic shared memory that a launch of a kernel may ask for."""
        limit = ctypes.c_int()
        attribute = ctypes.c_int(_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        self._call("cuFuncGetAttribute", ctypes.byref(limit), attribute, ctypes.c_void_p(function))
        return limit.value

    def allow_shared(self, function: int, num_bytes: int) -> None:
        """Allow launches of a kernel to ask for more dynamic shared memory.

        Raises:
            DriverError: a block of this card cannot have that much.
        """
        attribute = ctypes.c_int(_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        self._call("cuFuncSetAttribute", ctypes.c_void_p(function), attribute, ctypes.c_int(num_bytes))

    def uuid(self, index: int) -> str:
        """Return the UUID of a card as ``nvidia-smi`` writes it.

        Raises:
            DriverError: there is no such card.
        """
        number, device = (ctypes.c_ubyte * 16)(), ctypes.c_int()
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
        self._call("cuDeviceGetUuid_v2", ctypes.byref(number), device)
        return f"GPU-{uuid.UUID(bytes=bytes(number))}"

    def _call(self, function: str, *arguments: object) -> None:
        if status := getattr(self._library, function)(*arguments):
            raise self._failure(status)

    def _failure(self, status: int) -> DriverError:
        """Return the exception of a status, with the driver's name and description of it."""
        texts = []
        for function in (self._library.cuGetErrorName, self._library.cuGetErrorString):
            text = ctypes.c_char_p()
            function(ctypes.c_int(status), ctypes.byref(text))
            texts.append((text.value or b"unknown error").decode())
        return DriverError(status, ": ".join(texts))
