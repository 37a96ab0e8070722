from __future__ import annotations

import numpy as np
import pytest

from llmd.api import INTEGER_FORMATS, IntegerFormat
from llmd.models.formats.dequantization import dequantize
from llmd.testing.integer_weights import random_integers


@pytest.mark.parametrize("form", INTEGER_FORMATS.values(), ids=lambda form: form.name)
def test_numbers_have_the_spread_that_was_asked_for_and_codes_their_range(form: IntegerFormat) -> None:
    weight = random_integers(form.name, (200, 512), 0.25, np.random.default_rng(1))
    numbers = dequantize(weight)
    assert 0.2 < float(numbers.std()) < 0.5
    assert abs(float(numbers.mean())) < 0.15
    assert weight.data.max() == (1 << form.bits) - 1
    assert weight.group_size == form.row_group_size(512)
    assert (weight.minimums is not None) == form.has_minimum
    assert weight.scales is not None
    assert (weight.scales.fine is not None) == bool(form.coarse_size)


def test_a_short_last_group_has_a_scale() -> None:
    weight = random_integers("q4_g64", (3, 70), 1.0, np.random.default_rng(2))
    assert weight.scales is not None
    assert weight.scales.coarse.shape == (3, 3)
