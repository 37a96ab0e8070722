from __future__ import annotations

import numpy as np
import pytest

from llmd.models.formats.byte_fit import ByteFit, fit_bytes, most_step
from llmd.models.formats.group_fit import Groups, fit_affine

Float64 = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def heavy_tailed() -> Groups:
    draw = np.random.default_rng(9)
    return Groups((draw.standard_t(4, (32, 800)) * 0.02).astype(np.float32))


def numbers_of(groups: Groups, fit: ByteFit) -> Float64:
    numbers: Float64 = np.repeat(fit.coarse.astype(np.float64), 8) * (fit.step * groups.codes - fit.below)
    return numbers


def error_of(groups: Groups, fit: ByteFit) -> float:
    return float(np.sum((numbers_of(groups, fit) - groups.weights) ** 2))


@pytest.mark.parametrize(("most", "bits", "step"), [(15, 4, 15), (15, 8, 17), (7, 8, 36), (3, 8, 85)])
def test_the_largest_step_keeps_codes_in_a_byte(most: int, bits: int, step: int) -> None:
    assert most_step(most, bits) == step
    assert step * most <= 255


@pytest.mark.parametrize("shift", [0.0, 0.5, -0.5])
@pytest.mark.parametrize(("most", "largest"), [(15, 15), (7, 36), (3, 85)])
def test_every_code_of_a_group_would_be_an_int8(most: int, largest: int, shift: float) -> None:
    fit = fit_bytes(Groups(heavy_tailed().weights + np.float32(shift)), most, largest, 8)
    assert (fit.step == np.rint(fit.step)).all()
    assert (fit.below == np.rint(fit.below)).all()
    assert 0 <= fit.step.min() <= fit.step.max() <= largest
    assert 0 <= fit.below.min() <= fit.below.max() <= 128
    assert (fit.step * most - fit.below).max() <= 127
    assert fit.coarse.shape == (100,)


def test_a_byte_costs_little_of_what_a_group_could_have_alone() -> None:
    groups = heavy_tailed()
    free = fit_affine(groups, 15, minimum_below_zero=True)
    groups.round(free.scale, free.minimum, 0, 15)
    least = float(np.sum((free.scale * groups.codes + free.minimum - groups.weights) ** 2))
    assert error_of(groups, fit_bytes(groups, 15, 15, 8)) < 1.1 * least


def test_a_group_far_smaller_than_its_neighbours_loses_no_more_than_its_own_size() -> None:
    groups = heavy_tailed()
    groups.weights[:, ::8] *= 1e-3
    groups = Groups(groups.weights)
    off = (numbers_of(groups, fit_bytes(groups, 15, 15, 8)) - groups.weights)[:, ::8]
    assert np.sum(off**2) <= 1.001 * np.sum(groups.weights[:, ::8].astype(np.float64) ** 2)


def test_nothing_but_zeros_stays_so() -> None:
    groups = Groups(np.zeros((32, 8), np.float32))
    fit = fit_bytes(groups, 15, 15, 8)
    assert (np.repeat(fit.coarse.astype(np.float64), 8) * (fit.step * groups.codes - fit.below) == 0).all()
