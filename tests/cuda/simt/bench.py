"""Runs kernels that are written in tests."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from llmd_backend_cuda.runtime import KernelSpec, Launch, Memory
from tests.cuda.simt.runtime import SimtRuntime

Array = NDArray[np.generic]
HEADER = """
#include "gpu.cuh"
struct Args {
  const void* in;
  void* out;
  i32 count;
};
"""


class Args(ctypes.Structure):
    """The arguments of every kernel here."""

    _fields_ = (("input", ctypes.c_void_p), ("output", ctypes.c_void_p), ("count", ctypes.c_int))


class Bench:
    """Runs kernels that are written in tests."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.folder = folder
        self.runtime = SimtRuntime(folders=[folder], **options)  # type: ignore[arg-type]
        self.kept: list[Memory] = []

    def upload(self, array: Array) -> Memory:
        memory = self.runtime.allocate(array.nbytes)
        self.runtime.upload(memory, 0, array)
        self.kept.append(memory)
        return memory

    def launch(self, body: str, memory: Memory | None, output: Memory, **options: int) -> Launch:
        """Return the launch of a kernel ``test``; ``body`` is the text after the header."""
        source = f"test{len(list(self.folder.iterdir()))}"  # a runtime reads a file once
        (self.folder / f"{source}.cu").write_text(HEADER + body, encoding="utf-8")
        kernel = self.runtime.kernel(KernelSpec.of(source, "test"))
        args = Args(0 if memory is None else memory.pointer, output.pointer, options.get("count", 0))
        blocks = options.get("blocks", 1)
        return Launch(
            kernel, (blocks, 1, 1), options.get("threads", 32), args, options.get("shared_bytes", 0)
        )

    def run(self, body: str, inputs: Array | None, output: Array, **options: int) -> None:
        """Run a kernel on an input; fill the output."""
        memory = None if inputs is None else self.upload(inputs)
        result = self.runtime.allocate(output.nbytes)
        self.runtime.launch(self.launch(body, memory, result, **options))
        self.runtime.download(output, result, 0)


def kernel(statements: str, before: str = "") -> str:
    return f"{before}\nKERNEL test(const Args args) {{\n{statements}\n}}\n"
