"""Adapters of the rows of a step: what is launched, and what it changes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from llmd.api import StageLimits, Step
from llmd.api.step import Float32
from llmd.testing.adapter_cases import adapted_model
from llmd.testing.plans import TinyModel
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard
from tests.plugins.backend_cuda.bench import Bench, sequences

pytestmark = NEEDS_COMPILER

LIMITS = StageLimits(max_rows=100, max_sequences=4, max_outputs=100, max_adapters=2)
ADAPTERS = {"adapt_middle", "adapt_outputs"}


def bench(*, adapted: bool, card: SimulatedCard | None = None) -> Bench:
    plan = adapted_model() if adapted else TinyModel().plan()
    return Bench(card, plan=plan, limits=LIMITS, blocks={0: 16, 1: 16})


def step(adapters: Sequence[int] | None, rows: Sequence[int] = (3, 1, 12)) -> Step:
    """Return a step of three new sequences, with their adapters."""
    plain = sequences([(0, count) for count in rows], [[0, 1], [2, 3], [4, 5]])
    numbers = None if adapters is None else np.array(adapters, np.int32)
    return msgspec.structs.replace(plain, adapters=numbers)


def parts(logits: Float32) -> list[Float32]:
    return [logits[:3], logits[3:4], logits[4:]]


def test_rows_have_their_own_adapters_and_others_the_bits_of_the_plain_model() -> None:
    mine, plain = bench(adapted=True), bench(adapted=False)
    without = parts(plain.logits(step(None)))
    alone = [parts(mine.logits(step([number] * 3))) for number in (0, 1)]
    mixed = parts(mine.logits(step([1, -1, 0])))
    np.testing.assert_array_equal(mixed[0], alone[1][0])
    np.testing.assert_array_equal(mixed[1], without[1])
    np.testing.assert_array_equal(mixed[2], alone[0][2])
    assert not np.allclose(alone[0][2], without[2], rtol=1e-2)
    assert not np.allclose(alone[0][0], alone[1][0], rtol=1e-2)


def test_streamed_layers_have_their_adapters() -> None:
    mixed, streamed = step([1, -1, 0]), (1, 2, 4)
    resident = bench(adapted=True).logits(mixed)
    found = Bench(plan=adapted_model(), limits=LIMITS, blocks={0: 16, 1: 16}, streamed=streamed)
    assert found.program.streamed == streamed
    np.testing.assert_array_equal(found.logits(mixed), resident)


def launched(card: SimulatedCard, given: Bench, of: Step) -> list[str]:
    card.launched.clear()
    given.logits(of)
    return list(card.launched)


def test_steps_without_adapters_launch_what_the_plain_model_does() -> None:
    """Steps of more than 64 rows run without graphs, whose launches are not noted."""
    mine, plain = bench(adapted=True), bench(adapted=False)
    many = (30, 20, 20)
    expected = launched(plain.card, plain, step(None, many))
    assert not ADAPTERS & {*expected}
    for none in (None, [-1, -1, -1]):
        assert launched(mine.card, mine, step(none, many)) == expected
    assert {*launched(mine.card, mine, step([-1, -1, 0], many))} >= ADAPTERS


def test_steps_with_and_without_adapters_have_graphs_of_their_own() -> None:
    mine = bench(adapted=True)
    for adapters, graphs in ((None, 1), ([1, -1, 0], 2), ([0, 0, -1], 2), ([-1, -1, -1], 2)):
        mine.logits(step(adapters))
        assert mine.card.num_graphs == graphs
