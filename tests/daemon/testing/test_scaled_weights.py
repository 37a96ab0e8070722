from __future__ import annotations

import numpy as np

from llmd.models.formats.dequantization import dequantize
from llmd.models.formats.fp8 import check_numbers
from llmd.testing.scaled_weights import random_floats


def test_weights_have_all_codes_but_those_of_no_numbers() -> None:
    weight = random_floats("fp8", (200, 300), 0.1, np.random.default_rng(1))
    assert len(np.unique(weight.data)) == 254
    check_numbers(weight.data.view(np.uint8))
    assert weight.scales is not None
    assert weight.scales.coarse.shape == (200, 3)
    assert 0.05 < np.std(dequantize(weight)) < 0.2
