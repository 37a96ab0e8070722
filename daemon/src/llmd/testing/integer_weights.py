"""Random weights in every integer format, with all its codes and fine scales, of plausible sizes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api import INTEGER_FORMATS, OWN_FORMATS, Format, GroupScales, IntegerFormat, Outliers, WeightData
from llmd.models.formats.gguf_blocks import block_bytes, set_coarse_scales


def random_integers(
    name: Format, shape: tuple[int, ...], spread: float, draw: np.random.Generator
) -> WeightData:
    """Return a weight ``[out, in]`` in an integer format with about the standard deviation ``spread``."""
    form = INTEGER_FORMATS[name]
    rows, row_len = shape
    least = 1 if name in OWN_FORMATS and form.zero == 128 else 0  # llmd's own formats have no -128
    codes = draw.integers(least, 1 << form.bits, (rows, row_len), dtype=np.uint8)
    size = form.row_group_size(row_len)
    typical = float(np.std(WeightData(name, codes).integers())) or 1.0
    scales = _random_scales(form, rows, row_len, spread / typical, draw)
    if not form.has_minimum:
        outliers = random_outliers(form, rows, row_len, draw) if form.outliers else None
        return WeightData(name, codes, scales, group_size=size, outliers=outliers)
    if form.in_int8:
        return _random_bytes(form, codes, spread, draw)
    middle = -spread / typical * ((1 << form.bits) - 1) / 2
    return WeightData(name, codes, scales, _random_scales(form, rows, row_len, middle, draw), size)


def random_blocks(
    name: Format, rows: int, row_len: int, spread: float, draw: np.random.Generator
) -> NDArray[np.uint8]:
    """Return blocks of a GGUF file, uint8 ``[rows, bytes per row]``, with any codes and fine scales.

    The coarse scales and minimums give the weights about the standard deviation ``spread``.
    """
    integers = random_integers(name, (rows, row_len), spread, draw)
    assert integers.scales is not None
    blocks = draw.integers(0, 256, (rows, block_bytes(name, row_len)), dtype=np.uint8)
    set_coarse_scales(name, blocks, integers.scales, integers.minimums)
    return blocks


def _random_bytes(
    form: IntegerFormat, codes: NDArray[np.uint8], spread: float, draw: np.random.Generator
) -> WeightData:
    """Draw any fine scales for which scaled codes fit in a byte, and any minimums that keep them in int8."""
    rows, row_len = codes.shape
    most = (1 << form.bits) - 1
    groups = (rows, -(-row_len // form.group_size))
    steps = draw.integers(0, min(1 << form.fine_bits, 255 // most + 1), groups)
    below = draw.integers(np.maximum(steps * most - 127, 0), 129)
    coarse = (spread / 60 * draw.uniform(0.5, 1.5, (rows, -(-row_len // form.coarse_size)))).astype(
        np.float16
    )
    scales = GroupScales(coarse, steps.astype(np.uint8))
    return WeightData(form.name, codes, scales, GroupScales(-coarse, below.astype(np.uint8)), form.group_size)


def random_outliers(form: IntegerFormat, rows: int, row_len: int, draw: np.random.Generator) -> Outliers:
    """Draw any residuals, some of them two at the same weight."""
    lengths = np.minimum(form.group_size, row_len - np.arange(0, row_len, form.group_size))
    shape = (rows, len(lengths), form.outliers)
    columns = draw.integers(0, lengths[:, None], shape).astype(np.uint8)
    columns[..., 1] = np.where(draw.random(shape[:2]) < 0.25, columns[..., 0], columns[..., 1])
    return Outliers(columns, draw.integers(-127, 128, shape).astype(np.int8))


def _random_scales(
    form: IntegerFormat, rows: int, row_len: int, typical: float, draw: np.random.Generator
) -> GroupScales:
    """Draw scales from 0.5 to 1.5 times ``typical``; fine scales over their whole range."""
    groups = -(-row_len // form.row_group_size(row_len))
    if not form.coarse_size:
        factors = draw.uniform(0.5, 1.5, (rows, groups))
        if form.wide_scales:
            return GroupScales(np.exp2(np.rint(np.log2(typical * factors))).astype(np.float32))
        return GroupScales((typical * factors).astype(np.float16))
    least = 0 if form.has_minimum else -(1 << (form.fine_bits - 1))
    dtype = np.uint8 if form.has_minimum else np.int8
    fine = draw.integers(least, least + (1 << form.fine_bits), (rows, groups)).astype(dtype)
    factors = draw.uniform(0.5, 1.5, (rows, -(-row_len // form.coarse_size)))
    coarse = typical * factors / float(np.sqrt(np.mean(fine.astype(np.float64) ** 2)) or 1.0)
    return GroupScales(coarse.astype(np.float16), fine)
