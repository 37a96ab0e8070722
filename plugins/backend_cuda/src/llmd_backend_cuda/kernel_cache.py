"""Compiled kernels on disk, for one kind of card.

A file has the machine code of a source file with one set of definitions. Its name has a digest of everything
that the code follows from, so no file is ever out of date. A file that was not read for a season is deleted.
Others may delete files at any time, and a folder that cannot be written only costs time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from platformdirs import PlatformDirs

from llmd_backend_cuda import compiler
from llmd_backend_cuda.runtime import KernelSpec

_DAY_S = 86400.0
_SEASON_S = 90 * _DAY_S
_DIGEST_BYTES = hashlib.sha256().digest_size


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
        return _read(path) or self._compile(spec, path)

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
            _write(path, code)
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


def _read(path: Path) -> bytes | None:
    """Return the code in a file, and note that it was used; None if there is no complete file."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > _DAY_S:
            os.utime(path)
    code = stored[_DIGEST_BYTES:]
    return code if code and hashlib.sha256(code).digest() == stored[:_DIGEST_BYTES] else None


def _write(path: Path, code: bytes) -> None:
    """Write a file that begins with the digest of the code. Readers see all of it or nothing.

    Raises:
        OSError: the folder cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
