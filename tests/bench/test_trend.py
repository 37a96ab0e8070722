from __future__ import annotations

import pytest

from bench.trend import means, t_quantile, trend


def test_a_line_with_noise_has_its_slope_within_the_interval() -> None:
    noise = [0.3, -0.2, 0.1, -0.4, 0.2, 0.0, -0.1, 0.1]
    found = trend(range(8), [2 * x + 5 + one for x, one in enumerate(noise)])
    assert found.low < 2 < found.high
    assert found.low < found.slope < found.high
    assert found.high - found.low < 0.5


def test_noise_alone_has_no_slope_that_is_sure() -> None:
    found = trend(range(8), [0.3, -0.2, 0.1, -0.4, 0.2, 0.0, -0.1, 0.1])
    assert found.low < 0 < found.high


def test_the_interval_is_that_of_the_books() -> None:
    # y = 0, 0, 1, 1 over 0 to 3: slope 0.4, residuals 0.2 in squares, error 0.2 ** 0.5 / 2 / 5 ** 0.5,
    # t(0.975, 2) = 4.303.
    found = trend(range(4), [0, 0, 1, 1])
    assert found.slope == pytest.approx(0.4)
    assert found.high - found.slope == pytest.approx(4.303 * (0.1 / 5) ** 0.5, rel=0.01)


@pytest.mark.parametrize(("freedom", "quantile"), [(2, 4.3027), (3, 3.1824), (9, 2.26216), (18, 2.10092)])
def test_quantiles_are_those_of_the_tables(freedom: int, quantile: float) -> None:
    assert t_quantile(0.975, freedom) == pytest.approx(quantile, rel=0.01 if freedom < 4 else 1e-4)


def test_few_points_are_refused() -> None:
    with pytest.raises(ValueError, match="four points"):
        trend([0, 1, 2], [0, 1, 2])


def test_means_are_those_of_equal_parts() -> None:
    assert means([1, 3, 5, 7, 9, 11, 100], 3) == [2, 6, 10]
