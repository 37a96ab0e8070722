"""Stand-ins for CuPy's bindings of the CUDA runtime and for the driver, in main memory, without a card."""

# ruff: noqa: N802, N815 - the names are those of CuPy

from __future__ import annotations

import ctypes
import itertools
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

OUT_OF_MEMORY, NOT_READY, ILLEGAL_ADDRESS, LAUNCH_OUT_OF_RESOURCES = 2, 600, 700, 701
PEER_ALREADY_ENABLED = 704
MEMORY_BYTES = 1 << 27

DRIVER = r"""
// The functions of libcuda.so.1 that the backend calls. They note what they were called with.
#include <cstdio>
#include <cstring>

struct Attribute { int id; char padding[4]; union { char padding64[64]; int flag; unsigned size[3]; } value; };
struct Config {
  unsigned grid[3], block[3], shared; void* stream; Attribute* attributes; unsigned num_attributes;
};

extern "C" {
int status;          // what all functions return
char seen[1024];     // the last launch
int most_shared = 48 << 10;

int cuLaunchKernelEx(const Config* c, void* function, void** parameters, void** extra) {
  if (status) return status;
  float x; int n;
  memcpy(&x, parameters[0], 4);
  memcpy(&n, (char*)parameters[0] + 4, 4);
  int at = sprintf(seen, "grid %u %u %u block %u %u %u shared %u stream %p function %p extra %p x %g n %d",
      c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared, c->stream, function,
      (void*)extra, x, n);
  for (unsigned i = 0; i < c->num_attributes; ++i) {
    const Attribute& a = c->attributes[i];
    at += sprintf(seen + at, " attribute %d", a.id);
    for (int part = 0; part < (a.id == 4 ? 3 : 1); ++part) at += sprintf(seen + at, " %u", a.value.size[part]);
  }
  return 0;
}
int cuModuleLoadData(void** module, const void* image) { *module = (void*)0x11; return status; }
int cuModuleUnload(void* module) { return module == (void*)0x11 ? status : 400; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  *function = (void*)0x22;
  return status ? status : strcmp(name, "absent") ? 0 : 500;
}
int cuFuncGetAttribute(int* value, int attribute, void* function) { *value = most_shared; return status; }
int cuFuncSetAttribute(void* function, int attribute, int value) {
  if (attribute != 8 || value > 99 << 10) return 1;
  most_shared = value;
  return status;
}
int cuInit(unsigned flags) { return status; }
int cuDeviceGet(int* device, int ordinal) { *device = ordinal; return ordinal < 2 ? status : 101; }
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid[i] = i + 16 * device;
  return status;
}
int cuGetErrorName(int error, const char** text) { *text = error == 999999 ? nullptr : "CUDA_ERROR_TEST"; return 0; }
int cuGetErrorString(int error, const char** text) { *text = error == 999999 ? nullptr : "a test"; return 0; }
}
"""


def build_driver(folder: Path) -> Path:
    """Compile the stand-in for the driver; return the library."""
    source, library = folder / "driver.cpp", folder / "libdriver.so"
    source.write_text(DRIVER)
    subprocess.run(["g++", "-shared", "-fPIC", "-w", "-o", str(library), str(source)], check=True)
    return library


class HostCudaError(RuntimeError):
    """As CuPy's ``CUDARuntimeError``."""

    def __init__(self, status: int) -> None:
        super().__init__(f"cudaErrorTest: status {status}")
        self.status = status


class HostCuda:
    """As ``cupy.cuda.runtime``.

    What is called runs at once, except during a capture, in which only one stream is used. ``waits`` are the
    streams and events of `streamWaitEvent`, ``recorded_in`` the streams in which events were recorded.
    ``status`` is an error that each call raises, if it is not 0; ``busy`` is how many more queries find that
    an event is not reached. ``now_s`` is the time of points that are recorded with one. ``is_peer`` says
    whether cards read each other's memory, ``peer_copies`` has the target and the source of each such copy.
    """

    streamNonBlocking, streamCaptureModeRelaxed, eventDefault, eventDisableTiming = 1, 2, 0, 2
    memcpyHostToDevice, memcpyDeviceToHost = 1, 2

    def __init__(self) -> None:
        self.status = 0
        self.busy = 0
        self.devices: list[int] = []
        self.alive: dict[int, Any] = {}
        self.now_s = 0.0
        self.times: dict[int, float] = {}
        self.waits: list[tuple[int, int]] = []
        self.recorded_in: list[int] = []
        self.is_peer = 1
        self.enabled: list[int] = []
        self.peer_copies: list[tuple[int, int]] = []
        self._numbers = itertools.count(1000)
        self._captured: list[Callable[[], object]] | None = None

    def check_status(self, status: int) -> None:
        if status:
            raise HostCudaError(status)

    def setDevice(self, index: int) -> None:
        self.devices.append(index)
        self.check_status(self.status)

    def getDeviceProperties(self, index: int) -> dict[str, Any]:
        return {
            "name": b"Test card", "multiProcessorCount": 7, "major": 9, "minor": 0, "totalGlobalMem": MEMORY_BYTES,
            "pciDomainID": 0, "pciBusID": 0xC1, "pciDeviceID": 2, "sharedMemPerBlockOptin": 232448,
            "l2CacheSize": 50 << 20, "integrated": 0, "computeMode": 0,
        }  # fmt: skip

    def memGetInfo(self) -> tuple[int, int]:
        used = sum(len(kept) for kept in self.alive.values() if isinstance(kept, np.ndarray))
        return MEMORY_BYTES - used, MEMORY_BYTES

    def malloc(self, num_bytes: int) -> int:
        if num_bytes > self.memGetInfo()[0]:
            raise HostCudaError(OUT_OF_MEMORY)
        kept = np.full(num_bytes, 0xFF, np.uint8)
        address: int = kept.__array_interface__["data"][0]
        self.alive[address] = kept
        return address

    def hostAlloc(self, num_bytes: int, flags: int) -> int:
        return self.malloc(num_bytes)

    def memcpyAsync(self, to: int, source: int, num_bytes: int, kind: int, stream: int) -> None:
        self._run(stream, lambda: ctypes.memmove(to, source, num_bytes))

    def memcpyPeerAsync(
        self, to: int, to_device: int, source: int, source_device: int, num_bytes: int, stream: int
    ) -> None:
        self.peer_copies.append((to_device, source_device))
        self._run(stream, lambda: ctypes.memmove(to, source, num_bytes))

    def deviceCanAccessPeer(self, device: int, peer: int) -> int:
        return self.is_peer

    def deviceEnablePeerAccess(self, peer: int) -> None:
        if peer in self.enabled:
            raise HostCudaError(PEER_ALREADY_ENABLED)
        self.enabled.append(peer)

    def memsetAsync(self, to: int, value: int, num_bytes: int, stream: int) -> None:
        self._run(stream, lambda: ctypes.memset(to, value, num_bytes))

    def streamCreateWithFlags(self, flags: int) -> int:
        return self._new("stream")

    def eventCreateWithFlags(self, flags: int) -> int:
        event = self._new("event")
        if flags != self.eventDisableTiming:
            self.times[event] = math.nan
        return event

    def eventRecord(self, event: int, stream: int) -> None:
        assert self.alive[event] == "event"
        assert self.alive[stream] == "stream"
        self.recorded_in.append(stream)
        if event in self.times:
            self.times[event] = self.now_s

    def streamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        assert self.alive[event] == "event"
        assert self.alive[stream] == "stream"
        self.waits.append((stream, event))

    def eventElapsedTime(self, start: int, end: int) -> float:
        return 1e3 * (self.times[end] - self.times[start])

    def eventQuery(self, event: int) -> int:
        assert self.alive[event] == "event"
        self.busy -= 1
        return NOT_READY if self.busy >= 0 else 0

    def streamBeginCapture(self, stream: int, mode: int) -> None:
        assert mode == self.streamCaptureModeRelaxed
        self._captured = []

    def streamEndCapture(self, stream: int) -> int:
        captured, self._captured = self._captured, None
        return self._new(captured)

    def graphInstantiate(self, graph: int) -> int:
        return self._new(tuple(self.alive[graph]))

    def graphUpload(self, graph: int, stream: int) -> None:
        assert isinstance(self.alive[graph], tuple)

    def graphLaunch(self, graph: int, stream: int) -> None:
        for call in self.alive[graph]:
            call()

    def free(self, handle: int) -> None:
        del self.alive[handle]

    freeHost = streamDestroy = eventDestroy = graphDestroy = graphExecDestroy = free

    def _new(self, kind: object) -> int:
        number = next(self._numbers)
        self.alive[number] = kind
        return number

    def _run(self, stream: int, call: Callable[[], object]) -> None:
        assert self.alive[stream] == "stream"
        if self._captured is None:
            call()
        else:
            self._captured.append(call)
