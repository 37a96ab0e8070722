"""Paths of models: directories and GGUF files."""

from __future__ import annotations

import difflib
import shlex
from pathlib import Path

from llmd.api.errors import NotFoundError
from llmd.models.gguf.model_files import PROJECTOR, SUFFIX, is_gguf, model_name, part_names

CHECK_PATH = "check the path; `llmd list` shows the models of this machine"
SAFETENSORS = ".safetensors"
PATH_STARTS = ("/", "./", "../", "~")


def is_model_path(path: Path) -> bool:
    """Whether a path may be a model: a directory or a GGUF file. An inaccessible path is not."""
    try:
        return path.is_dir() or (is_gguf(path.name) and path.is_file())
    except OSError:
        return False


def names_path(name: str) -> bool:
    """Whether a name can only be a path."""
    return name in {".", ".."} or name.startswith(PATH_STARTS)


def names_file(name: str) -> bool:
    """Whether a name has the ending of a file of weights."""
    return is_gguf(name) or name.endswith(SAFETENSORS)


def expanded(name: str) -> Path:
    """Return the path that a user typed, with ``~`` expanded unless the home directory is unknown."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def resolved(path: Path) -> Path:
    """Return the absolute path of a model, without links.

    A link that ends in .gguf stays if its target does not: stores of other tools name files by their hash.
    """
    target = path.resolve()
    if is_gguf(path.name) and not is_gguf(target.name):
        return path.parent.resolve() / path.name
    return target


def path_error(name: str) -> NotFoundError | None:
    """Return why there is no model at a path; None if ``name`` neither exists nor looks like a path."""
    path = expanded(name)
    hint = CHECK_PATH
    try:
        path.stat()
    except FileNotFoundError:
        return _missing(name, path) if _is_typed_path(name) else None
    except (OSError, ValueError) as error:  # not accessible, too long, or with a null byte
        reason = error.strerror if isinstance(error, OSError) else "it has a null byte"
        return NotFoundError(f"{name} cannot be read: {reason}", hint=hint) if _is_typed_path(name) else None
    if path.name.startswith(PROJECTOR) and path.suffix == SUFFIX:
        return NotFoundError(
            f"{name} is the projector of a model", hint=f"give the model's own {SUFFIX} file"
        )
    if _begins_as_gguf(path):
        return NotFoundError(
            f"{name} is a GGUF file whose name does not end in {SUFFIX}",
            hint=f"link to it under such a name: `ln -s {shlex.quote(str(path.absolute()))} NAME{SUFFIX}`",
        )
    return NotFoundError(
        f"{name} is not a model: a model is a directory, or a file that ends in {SUFFIX}", hint=hint
    )


def _missing(name: str, path: Path) -> NotFoundError:
    """Return the error for a path that does not exist, with similar models in its folder."""
    try:
        known = [entry.name for entry in path.parent.iterdir() if is_model_path(entry)]
    except (OSError, ValueError):
        known = []
    nearest = difflib.get_close_matches(path.name, known, n=3)
    there = f"in {path.parent.absolute()} there is {' and '.join(nearest)}; " if nearest else ""
    return NotFoundError(f"no such file or directory: {name}", hint=f"{there}{CHECK_PATH}")


def _begins_as_gguf(path: Path) -> bool:
    """Whether a file is a GGUF file by its first bytes, such as one in the store of Ollama."""
    from llmd.models.gguf.header import MAGIC

    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _is_typed_path(name: str) -> bool:
    return names_path(name) or names_file(name)


def path_name(path: Path) -> str:
    """Return the name of a model without another name: its directory's, or its file's without the suffix."""
    return path.name if path.is_dir() else model_name(path.name)


def files_of(path: Path) -> list[Path]:
    """Return the files of a model directory, or a GGUF file and its other existing parts; sorted."""
    found = path.iterdir() if path.is_dir() else (path.with_name(name) for name in part_names(path.name))
    return sorted(filter(_is_file, found))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a link to an unreadable directory, or a name that is too long
        return False
