"""The launches of a stage, by buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from llmd_backend_cuda.context import Context
from llmd_backend_cuda.loaded import PlacedWeights
from llmd_backend_cuda.ops.fastest import Fastest
from llmd_backend_cuda.ops.linear import Product
from llmd_backend_cuda.outputs import Outputs
from llmd_backend_cuda.shapes import attention_shapes
from llmd_backend_cuda.stage_memory import StageMemory
from llmd_backend_cuda.step_launches import StepLaunches
from llmd_backend_cuda.tickets import TicketMemory
from llmd_backend_cuda.tuning import Tuner
from tests.cuda.simulated import CARD, NEEDS_COMPILER, SimulatedCard, load, lowered
from tests.plugins.backend_cuda.bench import LIMITS, MODEL, PLAN

pytestmark = NEEDS_COMPILER


class NoTuner(Tuner):
    """Notes the products that it could measure."""

    def __init__(self, folder: Path) -> None:
        super().__init__(CARD, folder)
        self.products: dict[int, list[Product]] = {}

    def fastest(self, context: Context, products: Callable[[int], Iterable[Product]]) -> Fastest:
        self.products = {rows: list(products(rows)) for rows in (1, context.limits.max_rows)}
        return {}


def make(
    first: int = 0, last: int | None = None, *, streamed: tuple[int, ...] = (), tuner: Tuner | None = None
) -> StepLaunches:
    card, program = SimulatedCard(), lowered(PLAN, first, last)
    memory = StageMemory(card, program, {0: 2, 1: 2}, LIMITS, attention_shapes(program))
    weights = PlacedWeights.of(program, load(card, program).loaded)
    outputs: list[Outputs | None] = [TicketMemory.allocate(card, program, LIMITS, memory.step).outputs]
    return StepLaunches(memory, weights, outputs, streamed, tuner)


def names(launches: StepLaunches, rows: int, outputs: int) -> list[str]:
    found = (segment.launches for segment in launches.segments(0, rows, outputs))
    return [launch.kernel.spec.name for segment in found for launch in segment]


def test_the_head_follows_the_body_if_there_are_output_rows() -> None:
    launches = make()
    body, whole = names(launches, 1, 0), names(launches, 1, 1)
    assert whole[: len(body)] == body
    assert whole[len(body)] == "gemv"
    assert launches.segments(0, 1, 1) is launches.segments(0, 1, 1)


def test_a_stage_without_the_head_has_the_body_only() -> None:
    launches = make(0, 3)
    assert names(launches, 1, 0)
    with pytest.raises(KeyError):
        launches.segments(0, 3, 0)  # is no bucket


def test_streamed_parts_are_segments_of_their_own() -> None:
    assert [segment.part for segment in make(streamed=(2,)).segments(0, 1, 1)] == [None, 2, None]


def test_all_products_can_be_measured(tmp_path: Path) -> None:
    tuner = NoTuner(tmp_path)
    make(tuner=tuner)
    few, many = tuner.products[1], tuner.products[LIMITS.max_rows]
    assert any(product.is_pair for product in few)
    assert not any(product.is_pair for product in many)
    for products in (few, many):
        head = products[-1]
        assert head.matrices[0].size.out == MODEL.vocab
        assert head.rows.chosen is None, "no step has chosen any rows"
