"""Variants of products are measured once, kept, and change no results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from llmd.api import DeviceLostError, Format, StageLimits, TensorRef, Weight
from llmd.testing.sources import RandomSource
from llmd_backend_cuda import compiler, tuning
from llmd_backend_cuda.cached_files import write_file
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.matrices import load_matrix
from llmd_backend_cuda.ops.fastest import Variant
from llmd_backend_cuda.ops.linear import Product, partial_bytes, rounded_bytes
from llmd_backend_cuda.ops.product_args import OutputArgs, RowsArgs
from llmd_backend_cuda.probe import CardProperties
from llmd_backend_cuda.runtime import Launch, Runtime
from llmd_backend_cuda.tuning import Tuner
from llmd_backend_cuda.weights import load_weights
from tests.cuda.simulated import CARD, NEEDS_COMPILER, SimulatedCard, lowered
from tests.plugins.backend_cuda.bench import LIMITS, PLAN, Bench, one

pytestmark = NEEDS_COMPILER

WIDTH, OUT, MAX_ROWS = 64, 48, 20
CLASSES = [8, 16, 32]
"""Row classes of a stage for 20 rows."""


class Workload:
    """Products of one shape, with different weights."""

    def __init__(self, count: int = 1, *, fmt: Format = "f16", max_rows: int = MAX_ROWS) -> None:
        self.card = card = SimulatedCard()
        weights = tuple(Weight(TensorRef(f"w{index}", (OUT, WIDTH)), fmt) for index in range(count))
        matrices = [load_matrix(card, RandomSource().read(weight)) for weight in weights]
        slots = [card.allocate(4 * max_rows * width) for width in (WIDTH, OUT)]
        program = msgspec.structs.replace(lowered(PLAN, 0, 1), weights=weights)
        limits = StageLimits(max_rows, 1, 1)
        self.context = Context(
            card, program, limits, StepArgs(), slots, [], (), matrices,
            rounded=card.allocate(rounded_bytes(program, limits)),
            partials=card.allocate(partial_bytes(limits, card.num_processors)),
        )  # fmt: skip
        self.products = [
            Product(
                RowsArgs(x=slots[0].pointer, width=WIDTH),
                [OutputArgs(out=slots[1].pointer, scale=1.0, width=OUT, tiles=matrix.size.tiles)],
                [matrix],
            )
            for matrix in matrices
        ]
        self.asked: list[int] = []

    def fastest(self, tuner: Tuner) -> dict[int, Variant | None]:
        """Return the fastest variants of the products by row class."""
        return {rows: variant for (_, rows), variant in tuner.fastest(self.context, self._products).items()}

    def _products(self, rows: int) -> Iterable[Product]:
        self.asked.append(rows)
        return iter(self.products)


class Last:
    """Measures launches: each variant is faster than the one before."""

    def __init__(self, gain: float = 2.0) -> None:
        self.rate, self._gain = 1.0, gain
        self.launches: list[Sequence[Launch]] = []

    def __call__(self, runtime: Runtime, launches: Sequence[Launch]) -> float:
        for launch in launches:
            runtime.launch(launch)
        self.rate *= self._gain
        self.launches.append(launches)
        return self.rate


def never(_runtime: Runtime, _launches: Sequence[Launch]) -> float:
    raise AssertionError("it is known")


@pytest.fixture(autouse=True)
def small_products_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_FEWEST_BYTES", 1)


def test_the_fastest_variant_is_chosen_and_kept(tmp_path: Path) -> None:
    workload = Workload()
    found = workload.fastest(Tuner(CARD, tmp_path, Last()))
    assert found[8] == 4
    assert list(found) == CLASSES
    assert workload.asked == [1, 16, MAX_ROWS]
    assert workload.fastest(Tuner(CARD, tmp_path, never)) == found


def test_a_variant_that_is_hardly_faster_is_not_chosen(tmp_path: Path) -> None:
    found = Workload().fastest(Tuner(CARD, tmp_path, Last(1.001)))
    assert found == dict.fromkeys(CLASSES)


def test_few_rows_are_multiplied_by_all_matrices_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a matrix would be read from a cache."""
    measure = Last()
    Workload(3, max_rows=1).fastest(Tuner(CARD, tmp_path, measure))
    assert {len(launches) for launches in measure.launches} == {3}
    monkeypatch.setattr(tuning, "_CACHE_BYTES", 2 * OUT * WIDTH + 1)
    measure = Last()
    Workload(3, max_rows=1, fmt="bf16").fastest(Tuner(CARD, tmp_path / "other", measure))
    assert {len(launches) for launches in measure.launches} == {2}


def test_many_rows_are_multiplied_by_one_matrix(tmp_path: Path) -> None:
    measure = Last()
    Workload(3, max_rows=65).fastest(Tuner(CARD, tmp_path, measure))
    most_rows = [launches for launches in measure.launches if launches[0].grid[0] == 65]
    assert most_rows
    for launches in most_rows:
        kernels = Counter(launch.kernel.spec.name for launch in launches)
        assert kernels["round_rows"] == kernels["gemm"] == 1


def test_small_products_are_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_FEWEST_BYTES", 2 * OUT * WIDTH + 1)
    assert Workload().fastest(Tuner(CARD, tmp_path, never)) == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", ["card", "kernel"])
def test_another_card_or_kernel_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    workload = Workload()
    workload.fastest(Tuner(CARD, tmp_path, Last()))
    card: CardProperties = CARD
    if change == "card":
        card = msgspec.structs.replace(CARD, uuid="GPU-1")
    else:
        read = compiler.read_source
        monkeypatch.setattr(compiler, "read_source", lambda name: read(name) + "\n" * (name == "gemv.cu"))
    with pytest.raises(AssertionError, match="known"):
        workload.fastest(Tuner(card, tmp_path, never))


@pytest.mark.parametrize("content", [b"", b"{}", b'[{"rows": 1}]', b"\xff"])
def test_a_file_that_cannot_be_used_is_replaced(tmp_path: Path, content: bytes) -> None:
    workload = Workload()
    workload.fastest(Tuner(CARD, tmp_path, Last()))
    (path,) = tmp_path.iterdir()
    write_file(path, content)
    found = workload.fastest(Tuner(CARD, tmp_path, Last()))
    assert workload.fastest(Tuner(CARD, tmp_path, never)) == found


def test_a_folder_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert Workload().fastest(Tuner(CARD, tmp_path / "file" / "folder", Last()))[8] == 4


def test_a_lost_card_ends_the_measurement_and_nothing_is_kept(tmp_path: Path) -> None:
    def lost(runtime: Runtime, _launches: Sequence[Launch]) -> float:
        raise runtime.lost("it fell off the bus")

    with pytest.raises(DeviceLostError, match="bus"):
        Workload().fastest(Tuner(CARD, tmp_path, lost))
    assert list(tmp_path.iterdir()) == []


def test_launches_are_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_BUDGET_S", 0.0)
    workload = Workload(max_rows=1)
    assert list(workload.fastest(Tuner(CARD, tmp_path))) == [8]
    assert workload.card.launched.count("gemv") == tuning._ROUNDS * 11 * len({2, 1, 3, 4})


def test_the_best_round_of_a_variant_counts(tmp_path: Path) -> None:
    """Each variant is slow in a round, while another model uses the card."""
    rates = iter([4.0, 1.0, 2.0, 1.0, 1.0, 1.0, 6.0, 1.0, 3.0, 3.0, 3.0, 3.0])
    found = Workload(max_rows=1).fastest(Tuner(CARD, tmp_path, lambda _runtime, _launches: next(rates)))
    assert found == {8: 3}


@pytest.mark.parametrize("name", ["f16", "q4_g128_sym"])
def test_variants_change_no_bits(tmp_path: Path, name: Format) -> None:
    """Of a step with many rows, and of steps with one and two rows after it."""
    program = lowered(PLAN, fmt=name)
    rows = []
    for tuner in (None, Tuner(CARD, tmp_path, Last())):
        card = SimulatedCard()
        weights = load_weights(card, program, RandomSource(), lambda _done, _total: None, (), tuner)
        bench = Bench(card)
        bench.stage = weights.stage({0: 8, 1: 8}, LIMITS)
        steps = (one(18, 0, (0, 1)), one(1, 18, (0, 1)), one(2, 19, (0, 1)))
        rows.append(np.concatenate([bench.logits(step) for step in steps]))
    (path,) = tmp_path.iterdir()
    assert b"WarpTile" in path.read_bytes()
    np.testing.assert_array_equal(rows[0], rows[1])
