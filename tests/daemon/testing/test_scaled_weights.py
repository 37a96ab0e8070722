from __future__ import annotations

import numpy as np
import pytest

from llmd.api import SCALED_GROUPS
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


@pytest.mark.parametrize(("name", "size"), SCALED_GROUPS.items())
def test_some_groups_have_only_subnormal_numbers_of_the_size_of_others(name: str, size: int) -> None:
    weight = random_floats(name, (400, 2 * size), 0.1, np.random.default_rng(1))
    codes, values = (
        part.reshape(400, 2, size) for part in (weight.data.view(np.uint8) & 127, dequantize(weight))
    )
    are_small = (codes < 8).all(axis=2)
    assert 0.2 < are_small.mean() < 0.3
    assert 0.5 < np.std(values[are_small]) / np.std(values[~are_small]) < 2
