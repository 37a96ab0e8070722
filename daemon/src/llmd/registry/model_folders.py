"""The model directories below a directory. This imports no NumPy: shells wait for it to complete names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

MODEL_FILES = ("config.json", "params.json", "*.safetensors", "*.gguf")
"""A directory with any of these counts as a model, complete or not."""


def model_folders(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the models ``name`` and ``org/name``, but none in deeper directories."""
    for directory in _subdirectories(root):
        if _is_model(directory):
            yield directory.name, directory
            continue
        for nested in _subdirectories(directory):
            if _is_model(nested):
                yield f"{directory.name}/{nested.name}", nested


def _subdirectories(directory: Path) -> list[Path]:
    return [entry for entry in _entries(directory) if entry.name[0] != "." and _is_directory(entry)]


def _is_model(directory: Path) -> bool:
    return any(entry.match(pattern) for entry in _entries(directory) for pattern in MODEL_FILES)


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:  # missing, or not readable
        return []


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a link to an unreadable directory, or a name that is too long
        return False
