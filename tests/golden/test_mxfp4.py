"""Mistakes in the codes and scales of MXFP4 weights break the golden bound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.engine.loading import OpenDevice
from llmd.models import weight_source
from llmd.models.split_formats import mxfp4_blocks
from tests.golden.engines import Architectures, engine, logits_error
from tests.golden.expected import read_expected
from tests.golden.models.catalog import tiny_model
from tests.golden.models.tiny import TinyModel

BOUND = 1e-9

Bytes = NDArray[np.uint8]


def scales_of_other_rows(codes: Bytes, scales: Bytes) -> Bytes:
    return mxfp4_blocks(codes, np.roll(scales, 1, axis=0))


def scales_of_other_groups(codes: Bytes, scales: Bytes) -> Bytes:
    return mxfp4_blocks(codes, np.roll(scales, 1, axis=1))


def negative_exponents(codes: Bytes, scales: Bytes) -> Bytes:
    return mxfp4_blocks(codes, np.uint8(254) - scales)


def high_half_first(codes: Bytes, scales: Bytes) -> Bytes:
    return mxfp4_blocks(codes >> np.uint8(4) | codes << np.uint8(4), scales)


def one_scale_of_all(codes: Bytes, scales: Bytes) -> Bytes:
    """Half of the last scale of the last row, of thousands."""
    changed = scales.copy()
    changed[-1, -1] -= 1
    return mxfp4_blocks(codes, changed)


@pytest.mark.parametrize(
    "mistake",
    [
        scales_of_other_rows,
        scales_of_other_groups,
        negative_exponents,
        high_half_first,
        one_scale_of_all,
    ],
)
def test_wrong_codes_and_scales_break_the_bound(
    mistake: Callable[[Bytes, Bytes], Bytes],
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = tiny_model("gpt-oss")
    expected = read_expected(case.name)
    with engine(case, checkpoint(case), architectures, open_device, device="reference") as core:
        assert logits_error(core, case, expected) <= BOUND
    monkeypatch.setattr(weight_source, "mxfp4_blocks", mistake)
    with engine(case, checkpoint(case), architectures, open_device, device="reference") as core:
        assert logits_error(core, case, expected) > BOUND
