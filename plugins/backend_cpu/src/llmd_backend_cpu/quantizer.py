"""Quantises plain weights while the core loads them; csrc/quantization.hpp gives the speed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api.integer_formats import INTEGER_FORMATS
from llmd.api.tensors import Format, WeightData
from llmd_backend_cpu import _ext


class NativeQuantizer:
    """See `llmd.api.quantizer.Quantizer`."""

    def quantize(self, weights: NDArray[np.generic], source: Format, into: WeightData) -> bool:
        if not weights.flags.c_contiguous:
            return False
        given = weights.view(np.uint8), source, into.group_size
        form = INTEGER_FORMATS[into.format]
        codes = into.data.view(np.uint8)
        assert into.scales is not None
        scales = into.scales.coarse.view(np.uint16)
        if into.minimums is None:
            if form.bits < 8:
                return _ext.quantize_symmetric(*given, form.bits, codes, scales)
            return _ext.quantize_eight_bits(*given, codes, scales, *_outliers(into))
        minimums = into.minimums.coarse.view(np.uint16)
        if not form.in_int8:
            return _ext.quantize_with_minimums(*given, form.bits, codes, scales, minimums)
        assert into.scales.fine is not None
        assert into.minimums.fine is not None
        fine = into.scales.fine.view(np.uint8), into.minimums.fine.view(np.uint8)
        done = _ext.quantize_bytes(*given, form.bits, form.fine_bits, codes, scales, *fine)
        np.bitwise_xor(scales, 0x8000, out=minimums)  # coarse minimums are the coarse scales times -1
        return done


def _outliers(into: WeightData) -> tuple[NDArray[np.uint8], NDArray[np.int8]]:
    if into.outliers is not None:
        return into.outliers.columns, into.outliers.residuals
    assert into.scales is not None
    none = (*into.scales.coarse.shape, 0)
    return np.empty(none, np.uint8), np.empty(none, np.int8)
