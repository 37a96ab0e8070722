"""Where a converted model is written: in a folder beside its place, and moved there when it is complete."""

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
    """Bytes that are free on the disk of ``path``."""
    return shutil.disk_usage(path).free


def is_gguf_target(target: Path) -> bool:
    """Whether a GGUF file is to be written there, and not a directory.

    Raises:
        ConfigError: neither could be read under that name.
    """
    name = target.name
    if not name.endswith(SUFFIX):
        if name.endswith(OTHER_FILES):
            raise ConfigError(
                f"{target}: this form is not written",
                hint=f"TARGET is a directory for safetensors, or a path that ends in {SUFFIX}",
            )
        return False
    if not is_gguf(name) or PART.fullmatch(name):
        raise ConfigError(
            f"{target}: a file of that name is taken for a projector or for one of several parts",
            hint=f"choose a name such as model{SUFFIX}",
        )
    return True


def check_place(source: Path, target: Path, *, force: bool) -> None:
    """Check that a model may be written to ``target``: nothing is there, or, with ``force``, a model that may go.

    Raises:
        ConflictError: something is there.
    """
    if not os.path.lexists(target) or (target.is_dir() and not any(target.iterdir())):
        return
    place, taken = target.resolve(), source.resolve()
    if place in (taken, *taken.parents) or place in {file.resolve() for file in files_of(source)}:
        raise ConflictError(
            f"{target} is the model itself, or holds it", hint="write to another place, then move it there"
        )
    if not force:
        raise ConflictError(
            f"{target} is there already", hint="choose another TARGET, or add --force to replace it"
        )
    is_model = target.is_file() if is_gguf_target(target) else (target / CONFIG_FILE).is_file()
    if not is_model:
        raise ConflictError(
            f"{target} is no model of that form, and --force replaces models only",
            hint="choose another TARGET",
        )


@contextmanager
def temporary_output(target: Path) -> Iterator[Path]:
    """A path of the same name in a folder beside ``target``, which is removed in the end with all that is left in it.

    The folder has its name before it is made: Ctrl-C may come as it is made, and whoever makes it can no longer say which it was.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = target.parent / f".{target.name}.{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700)
        yield folder / target.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_space(output: Path, num_bytes: int, free: FreeBytes) -> None:
    """Check before anything large is written that it fits.

    Raises:
        DiskSpaceError: it does not.
    """
    available = free(output.parent)
    if num_bytes > available:
        raise DiskSpaceError(
            f"the converted model takes {format_bytes(num_bytes)}, and {output.parent.parent} has "
            f"{format_bytes(available)} free: {format_bytes(num_bytes - available)} are missing",
            hint="make room, or choose a TARGET on a larger disk",
        )


def put(output: Path, target: Path) -> None:
    """MappedTensor what is complete to its place, durably; what was there goes away with the folder of the output."""
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
