"""Write a converted model to a temporary folder next to its target, and move it there when it is complete."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from llmd.api.byte_size import format_bytes
from llmd.api.errors import ConfigError, ConflictError, DiskSpaceError
from llmd.models.gguf.model_files import PART, SUFFIX, is_gguf
from llmd.models.hugging_face import CONFIG_FILE
from llmd.models.model_path import files_of

OTHER_FILES = (".safetensors", ".bin", ".pt", ".pth", ".onnx", ".json")
FreeBytes = Callable[[Path], int]


def free_bytes(path: Path) -> int:
    """Return the free bytes on the disk of ``path``."""
    return shutil.disk_usage(path).free


def is_gguf_target(target: Path) -> bool:
    """Whether ``target`` names a GGUF file rather than a directory.

    Raises:
        ConfigError: llmd could not read either under that name.
    """
    name = target.name
    if not name.endswith(SUFFIX):
        if name.endswith(OTHER_FILES):
            raise ConfigError(
                f"{target}: llmd does not write this kind of file",
                hint=f"give a directory for safetensors, or a path that ends in {SUFFIX}",
            )
        return False
    if not is_gguf(name) or PART.fullmatch(name):
        raise ConfigError(
            f"{target}: a file of that name looks like a projector or like one of several parts",
            hint=f"choose a name such as model{SUFFIX}",
        )
    return True


def check_place(source: Path, target: Path, *, force: bool) -> None:
    """Check that ``target`` may be written: it does not exist, or it is a model and ``force`` is set.

    Raises:
        ConflictError: it exists and must not be replaced.
    """
    if not os.path.lexists(target) or (target.is_dir() and not any(target.iterdir())):
        return
    place, taken = target.resolve(), source.resolve()
    if place in (taken, *taken.parents) or place in {file.resolve() for file in files_of(source)}:
        raise ConflictError(
            f"{target} is the model itself, or contains it", hint="choose another TARGET, then move it there"
        )
    if not force:
        raise ConflictError(
            f"{target} already exists", hint="choose another TARGET, or add --force to replace it"
        )
    is_model = target.is_file() if is_gguf_target(target) else (target / CONFIG_FILE).is_file()
    if not is_model:
        raise ConflictError(
            f"{target} is not a model of that form, and --force replaces only models",
            hint="choose another TARGET",
        )


@contextmanager
def temporary_output(target: Path) -> Iterator[Path]:
    """Yield a path of the same name in a temporary folder next to ``target``; remove the folder at the end.

    The name is chosen before the folder is created, so that Ctrl-C during the creation cannot leave an
    unknown folder.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = target.parent / f".{target.name}.{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700)
        yield folder / target.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_space(output: Path, num_bytes: int, free: FreeBytes) -> None:
    """Check that the model fits on the disk, before anything large is written.

    Raises:
        DiskSpaceError: it does not fit.
    """
    available = free(output.parent)
    if num_bytes > available:
        raise DiskSpaceError(
            f"the converted model takes {format_bytes(num_bytes)}, and {output.parent.parent} has "
            f"{format_bytes(available)} free: {format_bytes(num_bytes - available)} are missing",
            hint="free some space, or choose a TARGET on a larger disk",
        )


def put(output: Path, target: Path) -> None:
    """Move the complete output to the target, durably. A replaced model goes with the temporary folder."""
    for path in (output, *(output.rglob("*") if output.is_dir() else ())):
        _sync(path)
    if output.is_dir() and target.is_symlink():
        target.unlink()
    elif target.is_dir():
        target.rename(output.with_name(f"{output.name}.replaced"))
    output.replace(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
