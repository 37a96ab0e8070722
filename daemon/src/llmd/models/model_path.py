"""What a model is given by: the path of a directory, or of a GGUF file."""

from __future__ import annotations

from pathlib import Path

from llmd.api.errors import NotFoundError
from llmd.models.gguf.model_files import PROJECTOR, SUFFIX, is_gguf, model_name, part_names

PATH_STARTS = ("/", "./", "../", "~")


def is_model_path(path: Path) -> bool:
    """Whether a model may be there; one that cannot be looked at is none."""
    try:
        return path.is_dir() or (is_gguf(path.name) and path.is_file())
    except OSError:
        return False


def names_path(name: str) -> bool:
    """Whether a name can be nothing but a path."""
    return name in {".", ".."} or name.startswith(PATH_STARTS)


def expanded(name: str) -> Path:
    """The path that a user typed. A home of nobody stays as it is: there is nothing at such a path."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def path_error(name: str) -> NotFoundError | None:
    """Why there is no model at a path. None where ``name`` does not look like a path, and nothing lies there."""
    path = expanded(name)
    hint = "check the path; `llmd list` shows the models of this machine"
    try:
        path.stat()
    except FileNotFoundError:
        return NotFoundError(f"{name} does not exist", hint=hint) if _is_typed_path(name) else None
    except (OSError, ValueError) as error:  # not for this user to see, too long, or with a null byte
        reason = error.strerror if isinstance(error, OSError) else "it has a null byte"
        return NotFoundError(f"{name} cannot be read: {reason}", hint=hint) if _is_typed_path(name) else None
    if path.name.startswith(PROJECTOR) and path.suffix == SUFFIX:
        return NotFoundError(
            f"{name} is the projector of a model", hint=f"name the model's own {SUFFIX} file"
        )
    return NotFoundError(
        f"{name} is not a model: a model is a directory, or a file that ends in {SUFFIX}", hint=hint
    )


def _is_typed_path(name: str) -> bool:
    return names_path(name) or is_gguf(name)


def path_name(path: Path) -> str:
    """What a model is called that has no other name: as its directory, or as its file without what says its kind."""
    return path.name if path.is_dir() else model_name(path.name)


def files_of(path: Path) -> list[Path]:
    """The files that lie in a model's directory, sorted, or the GGUF file and its other parts, as far as they are there."""
    found = path.iterdir() if path.is_dir() else (path.with_name(name) for name in part_names(path.name))
    return sorted(filter(_is_file, found))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a link into what is not for us to read, or of a name that is too long
        return False
