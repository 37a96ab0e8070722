"""The measurement of a card, on a simulated one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from bench.gpu_model import RandomWeights, Streams, lower_shape
from bench.gpu_report import Figures, Round, Suite, page
from bench.shapes import Shape
from tests.cuda.simulated import NEEDS_COMPILER, open_device

ROOT = Path(__file__).parents[2]
pytestmark = NEEDS_COMPILER

TINY = Shape("tiny", 64, 2, 4, 2, 16, 128, 300, tied=False, context=256)


def test_streams_draw_the_same_tokens_alone_and_together() -> None:
    device = open_device()
    program = lower_shape(device, TINY, "q8_g128", 256)
    weights = device.load(program, RandomWeights(), lambda _done, _total: None)
    streams = Streams(weights, 2, 256, max_rows=32)
    drawn = []
    for count in (1, 2):
        for sequence in range(2):
            assert streams.prefill(sequence, 40) > 0
        assert streams.decode(count, 5) > 0
        drawn.append(streams.tokens)
    streams.close()
    weights.close()
    np.testing.assert_array_equal(drawn[0], drawn[1][:1])


def test_the_page_has_medians_and_ranges() -> None:
    rounds = [Round(3e12, 4e-3, 5e-3, 0.04), Round(3e12, 5e-3, 5e-3, 0.04), Round(3e12, 6e-3, 5e-3, 0.04)]
    made = page("today", "a card", TINY, Suite(7, [], 2.0), [Figures("q8_g128", 6_000_000_000, rounds)])
    assert "7 checks passed, 0 failed" in made
    assert "| 5.000 (4.000–6.000) |" in made
    assert "| 40.0 % (33.3–50.0) |" in made


def test_a_device_that_cannot_be_used_is_said_in_one_line() -> None:
    command = [sys.executable, "-m", "bench.gpu_check", "--device", "cuda:99"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("gpu-check: cuda:99 cannot be used")
    assert "Traceback" not in done.stderr
