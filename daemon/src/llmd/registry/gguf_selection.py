"""Which GGUF file of a repository is meant: most hold one model in a dozen quantisations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from llmd.api.errors import UnsupportedModelError
from llmd.models.gguf.model_files import first_files, model_name, part_names

DEFAULT = "Q4_K_M"
"""What is taken where nobody asks for another, as llama.cpp and Ollama do."""

NO_MODEL = re.compile(r"imatrix|mmproj", re.IGNORECASE)
LABEL = re.compile(
    r"(?:^|[-._])((?:UD-)?(?:IQ\d_\w+|TQ\d_\w+|Q\d(?:_\w+)?|MXFP4(?:_MOE)?|BF16|FP?16|FP?32))$",
    re.IGNORECASE,
)
"""How names of files end that say a quantisation."""


def choose_gguf(paths: Iterable[str], quant: str | None) -> list[str]:
    """The file of the quantisation ``quant``, or all its parts; none where nobody asks for one and there is no GGUF file.

    Raises:
        UnsupportedModelError: no file or several are meant; the message names what there is.
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
            f"the repository lacks the part {missing[0]}", hint="it is damaged, or being written: try later"
        )
    return files


def _models(paths: Iterable[str]) -> list[str]:
    """A path for each model, of those in parts that of the first."""
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
            hint="fetch the one that you mean by hand, and give its path",
        )
    labels = list(dict.fromkeys(map(_label, models)))
    if not labels:
        return UnsupportedModelError(
            f"the repository has no GGUF file, and so none of {quant}",
            hint="leave out what is behind the colon",
        )
    return UnsupportedModelError(
        f"the repository has no GGUF file of {quant or DEFAULT}; it has {', '.join(labels)}",
        hint=f"name one behind a colon, as in ORG/NAME:{labels[0]}",
    )


def _label(path: str) -> str:
    """The quantisation in the name of a file; all of the name where it says none."""
    stem = model_name(PurePosixPath(path).name)
    found = LABEL.search(stem)
    return (found[1] if found else stem).upper()
