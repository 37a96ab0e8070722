from __future__ import annotations

import numpy as np
import pytest

from llmd.models.formats.outlier_fit import least_units, take_outliers


def group(*numbers: float, size: int = 256) -> np.ndarray:
    """Return one group as a column, padded with zeros."""
    column = np.zeros((size, 1), np.float32)
    column[: len(numbers), 0] = numbers
    return column


@pytest.mark.parametrize(
    ("numbers", "scale"),
    [
        ((127, 127, 127, 127, 127), 1.0),  # five of equal size: none is an outlier
        ((1143, 254, 1143, 254, 127), 1.0),  # four, and the fifth within the range of the codes
        ((2286, 1, 1), 2.0),  # one that even an outlier code cannot represent with a smaller scale
        ((0, 0), 0.0),
    ],
)
def test_the_scale_is_the_least_with_which_four_weights_are_outliers(
    numbers: tuple[float, ...], scale: float
) -> None:
    assert least_units(group(*numbers), 4).tolist() == [scale]


def test_a_group_shorter_than_its_outliers_has_a_scale() -> None:
    assert least_units(group(9 * 127, size=3), 4).tolist() == [1.0]


def test_what_codes_do_not_reach_is_taken_out_in_steps_of_eight() -> None:
    draw = np.random.default_rng(1)
    numbers = np.rint(draw.uniform(-127, 127, (256, 50))).astype(np.float32)
    for column in range(50):
        places = draw.choice(256, draw.integers(0, 5), replace=False)
        numbers[places, column] = np.rint(draw.uniform(-1143, 1143, len(places)))
    codes = numbers.copy()
    outliers = take_outliers(codes, 4)
    assert np.abs(codes).max() <= 127
    whole = codes.copy()
    for column in range(50):
        np.add.at(
            whole[:, column], outliers.columns[column], 8 * outliers.residuals[column].astype(np.float32)
        )
    np.testing.assert_array_equal(whole, numbers)
