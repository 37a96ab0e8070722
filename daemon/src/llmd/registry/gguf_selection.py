"""Choose a GGUF file of a repository. Most repositories hold one model in a dozen quantisations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from llmd.api.errors import UnsupportedModelError
from llmd.models.gguf.model_files import first_files, model_name, part_names

DEFAULT = "Q4_K_M"
"""Used if no quantisation is requested, as in llama.cpp and Ollama."""

NO_MODEL = re.compile(r"imatrix|mmproj", re.IGNORECASE)
LABEL = re.compile(
    r"(?:^|[-._])((?:UD-)?(?:IQ\d_\w+|TQ\d_\w+|Q\d(?:_\w+)?|MXFP4(?:_MOE)?|BF16|FP?16|FP?32))$",
    re.IGNORECASE,
)
"""The quantisation at the end of a file name."""


def choose_gguf(paths: Iterable[str], quant: str | None) -> list[str]:
    """Return the file with the quantisation ``quant``, or all its parts.

    The list is empty if ``quant`` is None and there is no GGUF file.

    Raises:
        UnsupportedModelError: no file matches, or several do; the message names the candidates.
    """
    known = set(paths)
    models = [model for model in _models(known) if not NO_MODEL.search(PurePosixPath(model).name)]
    if not models and quant is None:
        return []
    meant = [model for model in models if _is(model, quant or DEFAULT)]
    if not meant and quant is None and len(models) == 1:
        meant = models
    if len(meant) != 1:
        raise _unclear(models, meant, quant)
    first = PurePosixPath(meant[0])
    files = [str(first.with_name(name)) for name in part_names(first.name)]
    if missing := [file for file in files if file not in known]:
        raise UnsupportedModelError(
            f"the repository lacks the part {missing[0]}",
            hint="it is damaged or still being uploaded: try again later",
        )
    return files


def _models(paths: Iterable[str]) -> list[str]:
    """Return one path for each model: of a split model, its first part."""
    folders: dict[str, list[str]] = {}
    for path in sorted(paths):
        folders.setdefault(str(PurePosixPath(path).parent), []).append(PurePosixPath(path).name)
    return [
        str(PurePosixPath(folder) / first)
        for folder, names in folders.items()
        for first in first_files(names)
    ]


def _is(path: str, quant: str) -> bool:
    stem = model_name(PurePosixPath(path).name).upper()
    return stem == quant or stem.endswith(tuple(f"{mark}{quant}" for mark in "-._"))


def _unclear(models: list[str], meant: list[str], quant: str | None) -> UnsupportedModelError:
    if meant:
        return UnsupportedModelError(
            f"the repository has {len(meant)} files of {quant or DEFAULT}: {', '.join(meant)}",
            hint="download the one you want by hand, and give its path",
        )
    labels = list(dict.fromkeys(map(_label, models)))
    if not labels:
        return UnsupportedModelError(
            f"the repository has no GGUF file, so {quant} cannot be chosen",
            hint="leave out the colon and what follows it",
        )
    return UnsupportedModelError(
        f"the repository has no GGUF file of {quant or DEFAULT}; it has {', '.join(labels)}",
        hint=f"choose one after a colon, as in ORG/NAME:{labels[0]}",
    )


def _label(path: str) -> str:
    """Return the quantisation in a file name; the whole name if it contains none."""
    stem = model_name(PurePosixPath(path).name)
    found = LABEL.search(stem)
    return (found[1] if found else stem).upper()
