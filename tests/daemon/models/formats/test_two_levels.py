from __future__ import annotations

import numpy as np

from llmd.models.formats.group_fit import Groups, fit_affine
from llmd.models.formats.two_levels import TwoLevels, fit_two_levels


def heavy_tailed() -> Groups:
    draw = np.random.default_rng(9)
    return Groups((draw.standard_t(4, (32, 800)) * 0.02).astype(np.float32))


def numbers_of(groups: Groups, fit: TwoLevels) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    scale = np.repeat(fit.coarse_scale.astype(np.float64), 8) * fit.fine_scale
    minimum = np.repeat(fit.coarse_minimum.astype(np.float64), 8) * fit.fine_minimum
    return scale * groups.codes + minimum


def error_of(groups: Groups, fit: TwoLevels) -> float:
    return float(np.sum((numbers_of(groups, fit) - groups.weights) ** 2))


def test_fine_numbers_use_their_range_and_coarse_minimums_are_negative() -> None:
    fit = fit_two_levels(heavy_tailed(), 15, 63, 8)
    for fine in (fit.fine_scale, fit.fine_minimum):
        assert fine.min() >= 0
        assert fine.max() <= 63
        assert (fine == np.rint(fine)).all()
    assert (fit.coarse_minimum <= 0).all()
    assert fit.coarse_scale.shape == fit.coarse_minimum.shape == (100,)


def test_rounding_scale_and_minimum_together_costs_little() -> None:
    groups = heavy_tailed()
    free = fit_affine(groups, 15, minimum_below_zero=True)
    groups.round(free.scale, free.minimum, 0, 15)
    least = float(np.sum((free.scale * groups.codes + free.minimum - groups.weights) ** 2))
    assert error_of(groups, fit_two_levels(groups, 15, 63, 8)) < 1.06 * least


def test_a_group_far_smaller_than_its_neighbours_loses_no_more_than_its_own_size() -> None:
    groups = heavy_tailed()
    groups.weights[:, ::8] *= 1e-3
    fit = fit_two_levels(Groups(groups.weights), 15, 63, 8)
    groups.round(
        np.repeat(fit.coarse_scale.astype(np.float32), 8) * fit.fine_scale,
        np.repeat(fit.coarse_minimum.astype(np.float32), 8) * fit.fine_minimum, 0, 15,
    )  # fmt: skip
    off = (numbers_of(groups, fit) - groups.weights)[:, ::8]
    assert np.sum(off**2) <= 1.001 * np.sum(groups.weights[:, ::8].astype(np.float64) ** 2)
