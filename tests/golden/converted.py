"""Runs conversions to their end, and reads what they have written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llmd.api import Architecture
from llmd.conversion.convert import Report, convert
from llmd.models.model_source import find_source

Stored = dict[str, tuple[str, NDArray[np.generic]]]


def converted(
    source: Path, target: Path, architectures: Mapping[str, Architecture], **options: Any
) -> Report:
    """Convert a model; returns what is reported in the end."""
    running = convert(source, target, architectures, **options)
    while True:
        try:
            next(running)
        except StopIteration as done:
            report = done.value
            assert isinstance(report, Report)
            return report


def stored_tensors(path: Path) -> Stored:
    """The tensors of a model as its files have them: the type of each, and its elements or blocks."""
    with find_source(path).open_checkpoint() as checkpoint:
        stored = [one for tensor in checkpoint.tensors.values() for one in tensor.stored]
        return {one.name: (one.dtype, np.array(checkpoint.view(one.name))) for one in stored}


def different(first: Stored, second: Stored) -> list[str]:
    """The names of the tensors that are not the same to the last bit in both."""
    return sorted(
        name
        for name in first.keys() | second.keys()
        if name not in first
        or name not in second
        or first[name][0] != second[name][0]
        or not np.array_equal(first[name][1], second[name][1])
    )
