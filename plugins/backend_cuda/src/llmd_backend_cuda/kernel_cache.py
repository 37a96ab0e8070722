"""Compiled kernels on disk, for one kind of card.

A file has the machine code of a source file with one set of definitions. Its name has a digest of everything
that the code follows from, so no file is ever out of date. A file that was not read for a season is deleted.
Others may delete files at any time, and a folder that cannot be written only costs time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from platformdirs import PlatformDirs

from llmd_backend_cuda import compiler
from llmd_backend_cuda.cached_files import read_file, write_file
from llmd_backend_cuda.runtime import KernelSpec

_SEASON_S = 90 * 86400.0


def default_folder() -> Path:
    """Return the folder of compiled kernels in the user's cache of llmd."""
    return Path(PlatformDirs("llmd", appauthor=False).user_cache_dir) / "kernels" / "cuda"


class KernelCache:
    """Machine code for cards of one compute capability."""

    def __init__(self, capability: tuple[int, int], folder: Path | None = None) -> None:
        self._capability = capability
        self._folder = folder or default_folder()
        self._common = self._digest_of_common()

    def code(self, spec: KernelSpec) -> bytes:
        """Return the machine code of a spec's file and definitions; compile it if it is not stored.

        Raises:
            DeviceError: the compiler refused it, or there is none.
        """
        path = self._path(spec)
        return read_file(path) or self._compile(spec, path)

    def compile_all(self, specs: Iterable[KernelSpec]) -> None:
        """Compile and store what is not stored yet, on all processors that this process may use.

        Raises:
            DeviceError: the compiler refused one of them, or there is none.
        """
        distinct = {(spec.source, spec.defines): spec for spec in specs}.values()
        with ThreadPoolExecutor(len(os.sched_getaffinity(0)), "llmd-nvrtc") as pool:
            list(pool.map(self.code, distinct))  # NVRTC compiles without the interpreter's lock
        self._delete_unused()

    def _compile(self, spec: KernelSpec, path: Path) -> bytes:
        architecture = compiler.architecture_of(self._capability, compiler.supported_architectures())
        code = compiler.compile_source(spec, architecture).code
        with contextlib.suppress(OSError):
            write_file(path, code)
        return code

    def _path(self, spec: KernelSpec) -> Path:
        """Return the file of a spec, whether it exists or not."""
        facts = (self._common, compiler.read_source(f"{spec.source}.cu"), spec.defines)
        return self._folder / f"{spec.source}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:32]}.cubin"

    def _digest_of_common(self) -> str:
        """Return a digest of what all kernels follow from."""
        headers = [(name, compiler.read_source(name)) for name in compiler.header_names()]
        facts = (headers, compiler.OPTIONS, self._capability, compiler.compiler_version())
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def _delete_unused(self) -> None:
        """Delete files that were not read for a season."""
        limit_s = time.time() - _SEASON_S
        with contextlib.suppress(OSError):
            for path in self._folder.iterdir():
                if path.stat().st_mtime < limit_s:
                    path.unlink()
