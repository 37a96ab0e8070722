"""Compiled kernels are stored, and a damaged or unwritable store only costs time."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from llmd.api import DeviceError
from llmd_backend_cuda import compiler
from llmd_backend_cuda.kernel_cache import KernelCache, default_folder
from llmd_backend_cuda.runtime import KernelSpec

SPEC = KernelSpec.of("round_rows", "round_rows")
DAY_S = 86400


@pytest.fixture
def cache(tmp_path: Path) -> KernelCache:
    return KernelCache((9, 0), tmp_path / "kernels")


def stored(folder: Path) -> list[Path]:
    """Return the files of a cache."""
    return sorted((folder / "kernels").iterdir())


def replace_code(path: Path, code: bytes) -> None:
    """Store other code, so that a test sees whether the file is read."""
    path.write_bytes(hashlib.sha256(code).digest() + code)


def test_code_is_compiled_once(cache: KernelCache, tmp_path: Path) -> None:
    assert cache.code(SPEC).startswith(b"\x7fELF")
    (path,) = stored(tmp_path)
    replace_code(path, b"stored")
    assert cache.code(SPEC) == b"stored"
    assert KernelCache((9, 0), tmp_path / "kernels").code(SPEC) == b"stored"


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 40, None])
def test_a_damaged_file_is_replaced(cache: KernelCache, tmp_path: Path, damage: bytes | None) -> None:
    code = cache.code(SPEC)
    (path,) = stored(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] if damage is None else damage)
    assert cache.code(SPEC) == code
    assert path.read_bytes() == whole
    assert stored(tmp_path) == [path]


def test_a_folder_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert KernelCache((9, 0), tmp_path / "file" / "kernels").code(SPEC).startswith(b"\x7fELF")


def test_all_that_code_follows_from_is_in_the_name(
    cache: KernelCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kernels"
    cache.code(SPEC)
    cache.code(KernelSpec.of("round_rows", "another_kernel_of_the_file"))
    assert len(stored(tmp_path)) == 1
    cache.code(KernelSpec.of("round_rows", "round_rows", {"UNUSED": 1}))
    KernelCache((8, 0), folder).code(SPEC)
    with monkeypatch.context() as other:
        other.setattr(compiler, "compiler_version", lambda: (99, 0))
        KernelCache((9, 0), folder).code(SPEC)
    with monkeypatch.context() as other:
        other.setattr(compiler, "OPTIONS", (*compiler.OPTIONS, "--generate-line-info"))
        KernelCache((9, 0), folder).code(SPEC)
    read = compiler.read_source
    for changed in ("round_rows.cu", "gpu.cuh"):
        with monkeypatch.context() as other:
            other.setattr(compiler, "read_source", lambda name, at=changed: read(name) + "\n" * (name == at))
            KernelCache((9, 0), folder).code(SPEC)
    assert len(stored(tmp_path)) == 7


def test_all_kernels_are_compiled_at_once(cache: KernelCache, tmp_path: Path) -> None:
    others = [KernelSpec.of("round_rows", "round_rows", {"UNUSED": value}) for value in range(3)]
    cache.compile_all([SPEC, *others, SPEC])
    assert len(stored(tmp_path)) == 4


def test_the_first_kernel_that_does_not_compile_is_named(cache: KernelCache) -> None:
    wrong = KernelSpec.of("round_rows", "round_rows", {"float": ")"})
    with pytest.raises(DeviceError, match=r"round_rows\.cu does not compile for sm_90"):
        cache.compile_all([SPEC, wrong])


def test_files_that_nobody_reads_are_deleted(cache: KernelCache, tmp_path: Path) -> None:
    cache.code(SPEC)
    (used,) = stored(tmp_path)
    unused = used.with_name("unused-0.cubin")
    unused.touch()
    for path in (used, unused):
        os.utime(path, (time.time() - 100 * DAY_S,) * 2)
    cache.compile_all([SPEC])
    assert stored(tmp_path) == [used]
    assert time.time() - used.stat().st_mtime < DAY_S


def test_kernels_are_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "llmd" / "kernels" / "cuda"
