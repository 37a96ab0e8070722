"""The folders that llmd writes to."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from llmd.api.byte_size import format_bytes
from llmd.cli.doctor.check import Check, Surroundings, quoted

WRITTEN_BYTES = 4096
FULL = (errno.ENOSPC, errno.EDQUOT)


class WrittenFolder(msgspec.Struct, frozen=True):
    """A folder that llmd writes to."""

    name: str
    path: Path
    use: str
    """What llmd stores there."""
    low_bytes: int
    """Warn if fewer bytes are free."""


def checks(around: Surroundings) -> Iterator[Check]:
    cache = around.directories.cache
    for written in written_folders(around):
        yield folder_check(written, cache=cache)


def written_folders(around: Surroundings) -> list[WrittenFolder]:
    """Return every folder that llmd writes to, whether or not it exists."""
    large, small = 1 << 30, 16 << 20
    directories = around.directories
    temporary = Path(around.environ.get("TMPDIR") or "/tmp")  # noqa: S108 - examined; no file name in it is chosen
    return [
        WrittenFolder("models", directories.models, "pulled models", large),
        WrittenFolder("cache", directories.cache, "probe results, weights and prompts", large),
        WrittenFolder("state", directories.state, "the log of a background daemon", small),
        WrittenFolder("config", directories.config, "API keys", small),
        WrittenFolder("run", directories.user_socket.parent, "the daemon's socket", small),
        WrittenFolder("temporary", temporary, "the output of probes", small),
    ]


def free_bytes(folder: Path) -> int:
    """Return the bytes that this user may still write to the disk of a folder."""
    return shutil.disk_usage(folder).free


def folder_check(
    written: WrittenFolder, free: Callable[[Path], int] = free_bytes, *, cache: Path | None = None
) -> Check:
    """Check that a folder, or its nearest existing parent, is writable and has space.

    ``cache`` may be emptied to free space, if it is on the same disk.
    """
    name = f"folder:{written.name}"
    there = next(folder for folder in (written.path, *written.path.parents) if _exists(folder))
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(bytes(WRITTEN_BYTES))
        left = free(there)
    except OSError as error:
        seen = f"{there} cannot be written: {error.strerror}"
        if error.errno in FULL:
            return Check(name, "fail", seen, _freeing(written, there, cache))
        return Check(name, "warn", seen, _opening(there, written))
    seen = f"{written.path}, {format_bytes(left)} free"
    if left < written.low_bytes:
        return Check(name, "warn", seen, _freeing(written, there, cache))
    return Check(name, "ok", seen)


def _opening(there: Path, written: WrittenFolder) -> str:
    if there.is_dir():
        return f"make {there} writable, `chmod u+rwx {quoted(there)}`: it holds {written.use}"
    return f"move the file away, `mv {quoted(there)} {quoted(there)}.old`: a folder of this name holds {written.use}"


def _freeing(written: WrittenFolder, there: Path, cache: Path | None) -> str:
    advice = f"free space on its disk: the folder holds {written.use}"
    if (
        cache is not None
        and cache.is_dir()
        and cache.stat().st_dev == there.stat().st_dev
        and any(cache.iterdir())
    ):
        return f"{advice}; what llmd can make again is removed by `rm -r {quoted(cache)}`"
    return advice


def _exists(folder: Path) -> bool:
    try:
        return folder.exists()
    except OSError:  # a folder above it cannot be entered
        return False
