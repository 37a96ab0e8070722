from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.models.formats.group_fit import Groups, fit_affine, fit_symmetric

Float32 = NDArray[np.float32]


def random_groups(size: int = 32, offset: float = 0.0) -> Groups:
    draw = np.random.default_rng(9)
    return Groups((draw.standard_t(4, (size, 500)) + offset).astype(np.float32))


def error_of(groups: Groups, scale: Float32, minimum: Float32) -> Float32:
    error: Float32 = np.sum((scale * groups.codes + minimum - groups.weights) ** 2, axis=0)
    return error


@pytest.mark.parametrize("most", [3, 7, 15])
def test_the_error_is_that_of_the_codes_that_were_fitted(most: int) -> None:
    groups = random_groups()
    fit = fit_affine(groups, most, minimum_below_zero=False)
    groups.round(fit.scale, fit.minimum, 0, most)
    squares = np.sum(groups.weights**2, axis=0)
    # Rounding again with the fitted scale can only reduce the error.
    assert (error_of(groups, fit.scale, fit.minimum) <= (fit.error + squares) * 1.001 + 1e-4).all()


def test_a_fit_is_better_than_the_range_of_the_group() -> None:
    groups = random_groups()
    lowest, highest = groups.weights.min(axis=0), groups.weights.max(axis=0)
    scale = (highest - lowest) / np.float32(15)
    groups.round(scale, lowest, 0, 15)
    plain = error_of(groups, scale, lowest)
    fit = fit_affine(groups, 15, minimum_below_zero=False)
    groups.round(fit.scale, fit.minimum, 0, 15)
    assert error_of(groups, fit.scale, fit.minimum).sum() < 0.85 * plain.sum()


def test_minimums_stay_below_zero_where_they_must() -> None:
    groups = random_groups(offset=8.0)
    fit = fit_affine(groups, 15, minimum_below_zero=True)
    assert (fit.minimum <= 0).all()
    assert (fit.scale >= 0).all()
    assert (fit_affine(groups, 15, minimum_below_zero=False).minimum > 0).any()


def test_weights_on_a_grid_are_found() -> None:
    codes = np.random.default_rng(3).integers(0, 16, (64, 50))
    codes[0], codes[1] = 0, 15
    groups = Groups((codes * 0.25 - 1.5).astype(np.float32))
    fit = fit_affine(groups, 15, minimum_below_zero=False)
    np.testing.assert_allclose(fit.scale, 0.25, rtol=1e-4)
    np.testing.assert_allclose(fit.minimum, -1.5, rtol=1e-4)
    codes = np.random.default_rng(3).integers(-8, 8, (64, 50))
    codes[0] = -8
    fit = fit_symmetric(Groups((codes * -0.25).astype(np.float32)), 8)
    np.testing.assert_allclose(fit.scale, -0.25, rtol=1e-4)


def test_the_longer_end_of_symmetric_integers_is_for_the_weight_farthest_from_zero() -> None:
    weights = random_groups().weights
    fit = fit_symmetric(Groups(weights), 2)
    farthest = np.take_along_axis(weights, np.abs(weights).argmax(axis=0)[None], axis=0)[0]
    assert (fit.scale * farthest < 0).all()


def test_a_single_group_has_the_sums_that_it_has_among_many() -> None:
    groups = random_groups()
    for i in range(50):
        alone = Groups(groups.weights[:, i : i + 1].copy())
        assert alone.total[0] == groups.total[i]


def test_codes_of_groups_without_a_scale_are_zero() -> None:
    groups = Groups(np.array([[1, 5], [2, 5]], np.float32))
    groups.round(np.array([0.5, 0], np.float32), np.array([1, 5], np.float32), 0, 15)
    assert groups.codes.tolist() == [[0, 0], [2, 0]]


def test_groups_of_one_number_have_no_scale_to_fit() -> None:
    fit = fit_affine(Groups(np.full((32, 1), 0.5, np.float32)), 15, minimum_below_zero=False)
    assert (fit.scale[0], fit.minimum[0]) == (0, 0.5)
