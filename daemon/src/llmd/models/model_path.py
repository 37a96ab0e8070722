"""What a model is given by: the path of a directory, or of a GGUF file."""

from __future__ import annotations

from pathlib import Path

from llmd.models.gguf.model_files import is_gguf, model_name, part_names


def is_model_path(path: Path) -> bool:
    """Whether a model may be there; one that cannot be looked at is none."""
    try:
        return path.is_dir() or (is_gguf(path.name) and path.is_file())
    except OSError:
        return False


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
