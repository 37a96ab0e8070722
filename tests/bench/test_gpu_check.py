"""The measurement of a card, on a simulated one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from bench.gpu_check import FORMATS, RESULTS, SHIM, SHIM_SIZES, cases_of, result_of
from bench.gpu_engine import Answered, Served
from bench.gpu_model import RandomWeights, Streams, lower_shape, plan_of
from bench.gpu_report import Figures, Round, Sizes, Suite, page
from bench.shapes import Shape
from llmd.api import HOST_MEMORY
from llmd.engine.steps.step_trace import Tracer
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, open_device

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
    one, many = Answered(0.04, 4e-3), Answered(0.3, 6e-3)
    rounds = [Round(3e12, one_s, 5e-3, 0.04, one, many, 0.02, 0.01) for one_s in (4e-3, 5e-3, 6e-3)]
    sizes = Sizes(TINY)
    made = page(
        "today", "a card", sizes, Suite(7, [], 2.0), [Figures("q8_g128", 6_000_000_000, rounds)], 0.02
    )
    assert "7 checks passed, 0 failed" in made
    assert "| 5.000 (4.000–6.000) |" in made
    assert "| 40.0 % (33.3–50.0) |" in made
    assert "| 1.50 (1.50–1.50) | 1.0 % (1.0–1.0) |  50 % ( 50– 50) |" in made
    assert "cuBLAS takes 20.0 ms" in made
    assert "Not a measurement" not in made


def test_a_page_of_kernels_on_the_host_is_no_measurement() -> None:
    answered = Answered(0.04, 4e-3)
    figures = [Figures("q8_g128", 1, [Round(1.0, 1.0, 1.0, 1.0, answered, answered, None, None)])]
    made = page("today", "kernels", SHIM_SIZES, Suite(7, [], 2.0), figures, None, "it needs a card")
    assert made.splitlines()[2].startswith("**Not a measurement.**")
    assert "cuBLAS was not measured: it needs a card." in made
    assert "| not measured |" in made
    assert result_of("cuda:0", "today") == RESULTS / "today-gpu-cuda0.md"


def test_requests_through_the_engine_have_their_times() -> None:
    device = open_device(SimulatedCard())
    weights = device.load(
        lower_shape(device, TINY, "q8_g128", 256), RandomWeights(), lambda _done, _total: None
    )
    served = Served(device, plan_of(TINY, 64), weights, 2, Tracer())
    for streams in (1, 2):
        answered = served.answer(streams, 20, 4)
        assert answered.first_s > answered.token_s > 0
    share = served.host_share(2, 20, 4)
    assert share is not None
    assert 0 < share < 1
    served.close()
    weights.close()


def test_the_host_runs_a_few_cases_and_a_card_all() -> None:
    info = open_device().info
    few, every = cases_of(SHIM, info), cases_of("cuda:0", info)
    assert cases_of("vulkan:0", structs.replace(info, memory_id=HOST_MEMORY)) == few
    assert set(few) < set(every)
    assert {True} <= {case.draws for case in few}
    assert any(case.times_steps for case in few)


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize("device", [SHIM, "vulkan:0"])  # the latter is lavapipe
@pytest.mark.usefixtures("physical")
def test_the_whole_command_runs_on_the_host(tmp_path: Path, device: str) -> None:
    out = tmp_path / "page.md"
    command = [sys.executable, "-m", "bench.gpu_check", "--device", device, "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    made = out.read_text()
    assert "**Not a measurement.**" in made
    assert re.search(r"\*\*Conformance suite\*\*: \d\d+ checks passed, 0 failed", made)
    assert [line.split()[1] for line in made.splitlines() if line.startswith("| q")] == [*FORMATS, *FORMATS]
    assert made.strip() in done.stdout


@pytest.mark.parametrize("name", ["cuda:99", "vulkan:99"])
def test_a_device_that_cannot_be_used_is_said_in_one_line(name: str) -> None:
    command = [sys.executable, "-m", "bench.gpu_check", "--device", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"gpu-check: {name} cannot be used")
    assert "Traceback" not in done.stderr
