"""Find the GGUF files of a model: a single file, or all parts of one that llama.cpp has split."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from llmd.api.errors import CheckpointError
from llmd.models.files import is_named, list_names

SUFFIX = ".gguf"
PART = re.compile(r"(?P<model>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.ASCII)
MAX_PARTS = 1000
PROJECTOR = "mmproj"
"""Prefix of files with a multimodal projector, which are not models."""


def is_gguf(name: str) -> bool:
    """Whether a file of that name holds a model or a part of one."""
    return name.endswith(SUFFIX) and not name.startswith(PROJECTOR)


def model_name(name: str) -> str:
    """Return the name of a file without its suffix and part number."""
    part = PART.fullmatch(name)
    return part["model"] if part else name.removesuffix(SUFFIX)


def model_files(path: Path) -> tuple[Path, ...]:
    """Return the files of a model in order. ``path`` is a directory with one model, a file, or any part.

    Raises:
        CheckpointError: the directory holds no or several models, or a part is missing.
    """
    if not path.is_dir():
        return _with_other_parts(path)
    models = first_files(list_names(path))
    if len(models) == 1:
        return _with_other_parts(path / models[0])
    if not models:
        raise CheckpointError(
            "holds no GGUF file", file=str(path), hint="copy the model's file into it, or give its path"
        )
    shown = ", ".join(models[:5]) + (", …" if len(models) > 5 else "")
    raise CheckpointError(
        f"holds {len(models)} GGUF models: {shown}", file=str(path), hint="give the path of one of them"
    )


def first_files(names: Iterable[str]) -> list[str]:
    """Return one file for each GGUF model in a folder: of a split model, the first existing part."""
    models: dict[str, str] = {}
    for name in sorted(names):
        if is_gguf(name):
            part = PART.fullmatch(name)
            models.setdefault(f"{part['model']}/{part['count']}" if part else name, name)
    return list(models.values())


def part_names(name: str) -> tuple[str, ...]:
    """Return the names of all parts of the model to which a file belongs; only its own if it is not split.

    Raises:
        CheckpointError: the part number or the number of parts is not possible.
    """
    part = PART.fullmatch(name)
    if part is None:
        return (name,)
    count = int(part["count"])
    if not 1 <= int(part["number"]) <= count <= MAX_PARTS:
        raise CheckpointError(
            f"is named as part {int(part['number'])} of {count}",
            file=name,
            hint="use the files under the names that llama.cpp gave them",
        )
    return tuple(f"{part['model']}-{number:05}-of-{count:05}{SUFFIX}" for number in range(1, count + 1))


def _with_other_parts(path: Path) -> tuple[Path, ...]:
    paths = tuple(path.with_name(name) for name in part_names(path.name))
    for part in paths:
        if not is_named(part):
            raise CheckpointError(
                f"the part {part.name} is missing" if len(paths) > 1 else "the file is missing",
                file=str(path),
                hint=f"copy {part.name} into {part.parent} from where the model came from",
            )
    return paths
