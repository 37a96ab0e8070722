"""Formats of experts are compared on the experts that the rows of a step use."""

from __future__ import annotations

import numpy as np

from bench.expert_rates import ROWS, ExpertShape, Layers, Source, cells, compare, used_experts
from bench.quiet import QuietRounds
from tests.bench.watches import Watch

SMALL = ExpertShape("small", 256, 256, 6, 2, ("q4", "mxfp4"))


def test_each_number_of_rows_has_a_line_with_a_ratio() -> None:
    name, _, *lines, end = compare(SMALL, None, QuietRounds(Watch))
    assert name == "| small, rows | q4, GB/s | mxfp4, GB/s | ratio |"
    assert [line.split(" | ")[0] for line in lines] == [f"| {rows}" for rows in ROWS]
    assert end == ""


def test_an_expert_that_two_rows_use_is_read_once() -> None:
    routers = np.eye(4, dtype=np.float32)[None]
    rows = np.array([[4, 3, 0, 0], [4, 0, 3, 0], [3, 4, 0, 0]], np.float32)
    assert used_experts(routers, rows[:1], 2) == 2
    assert used_experts(routers, rows, 2) == 3


def test_experts_have_the_bytes_of_their_matrices() -> None:
    layers = Layers(SMALL, Source(SMALL), "mxfp4", None)
    assert layers.expert_bytes == 3 * 256 * 256 * 4.5 / 8
    assert layers.seconds(np.ones((2, 256), np.float32)) > 0


def test_the_ratio_is_the_median_of_those_of_each_round() -> None:
    assert cells([(1e9, 2e9), (4e9, 4e9), (2e9, 3e9)]) == ["2.0", "3.0", "**1.50** (1.00–2.00)"]
