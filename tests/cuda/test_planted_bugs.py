"""Bugs that are planted in kernels and in launch code are found: by an error, or by wrong results."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmd.api import ModelPlan, Step
from llmd.api.errors import DeviceError
from llmd.api.step import Float32
from llmd.builtin.architectures import rwkv7
from llmd.testing.plans import TinyModel
from llmd_backend_cuda.ops.gemm_tiles import WarpgroupTile
from llmd_backend_cuda.ops.linear import tiled_launches
from llmd_backend_cuda.runtime import Kernel, KernelSpec
from llmd_backend_cuda.step_memory import StepMemory
from tests.cuda.simt.build import KERNELS
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, step_of
from tests.golden.models.catalog import tiny_model
from tests.plugins.backend_cuda.bench import Bench, one, sequences
from tests.plugins.backend_cuda.ops.test_adapt import bench as of_adapters
from tests.plugins.backend_cuda.ops.test_adapt import step as step_with
from tests.plugins.backend_cuda.ops.test_head_linear import Bench as Heads
from tests.plugins.backend_cuda.ops.test_linear import Bench as Products
from tests.plugins.backend_cuda.test_expert_cache import Bench as Cached

pytestmark = NEEDS_COMPILER

STEPS = one(20, 0, [2, 3]), one(1, 20, [2, 3]), one(3, 21, [2, 3])
"""A prompt on tensor cores, a token, and a few; the keys of all are in two blocks."""


class MutatedCard(SimulatedCard):
    """A card with a change in one file of the kernels."""

    def __init__(self, folder: Path, file: str, old: str, new: str) -> None:
        """Replace the only place of ``old``; the file, or those that include it, are compiled again."""
        super().__init__()
        shutil.copytree(KERNELS, folder)
        text = (folder / file).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} has changed: plant the bug again"
        (folder / file).write_text(text.replace(old, new), encoding="utf-8")
        self._folders = (folder,)
        self._changed: dict[KernelSpec, Kernel] = {}
        self._sources = {path.stem for path in folder.glob("*.cu") if f'"{file}"' in _included(path, folder)}
        self._sources.add(Path(file).stem)

    def kernel(self, spec: KernelSpec) -> Kernel:
        if spec.source not in self._sources:
            return super().kernel(spec)
        if spec not in self._changed:
            self._changed[spec] = super(SimulatedCard, self).kernel(spec)
        return self._changed[spec]


def _included(path: Path, folder: Path) -> str:
    """Return the lines of a file and of all that it includes."""
    text = path.read_text(encoding="utf-8")
    names = [line.split('"')[1] for line in text.splitlines() if line.startswith("#include")]
    return text + "".join(_included(folder / name, folder) for name in names if (folder / name).exists())


def answers(bench: Bench) -> list[Float32] | str:
    """Return the logits of all steps, or what the engine finds in a kernel."""
    try:
        return [bench.logits(step) for step in STEPS]
    except DeviceError as error:
        return str(error)


@pytest.fixture(scope="module")
def right() -> list[Float32]:
    found = answers(Bench())
    assert isinstance(found, list)
    return found


def logits_or_error(
    card: SimulatedCard, plan: ModelPlan, blocks: Mapping[int, int], steps: Sequence[Step]
) -> list[Float32] | str:
    try:
        bench = Bench(card, plan=plan, blocks=blocks)
        return [bench.logits(step) for step in steps]
    except DeviceError as error:
        return str(error)


def assert_bug_is_found(
    folder: Path, bug: tuple[str, str, str], plan: ModelPlan, blocks: Mapping[int, int], steps: Sequence[Step]
) -> None:
    """Assert that a plan's logits are wrong, or an error, with a bug: file, old text and new one."""
    right = logits_or_error(SimulatedCard(), plan, blocks, steps)
    assert isinstance(right, list)
    found = logits_or_error(MutatedCard(folder / "kernels", *bug), plan, blocks, steps)
    assert isinstance(found, str) or are_wrong(found, right)


def are_wrong(found: list[Float32] | str, right: list[Float32]) -> bool:
    assert isinstance(found, list), found
    return any(not np.array_equal(mine, other) for mine, other in zip(found, right, strict=True))


def test_a_copy_of_the_kernels_gives_the_same_bits(tmp_path: Path, right: list[Float32]) -> None:
    card = MutatedCard(tmp_path / "kernels", "gemv.cu", "// The matrix and the tile", "// Matrix and tile")
    assert not are_wrong(answers(Bench(card)), right)


WAIT_OF_INT8 = "wait_for_previous_kernel();\n    if (args.x.count && block_x() >= *args.x.count) return;\n    const int chunks"
GEMV_BARRIER = "    block_barrier();\n    const LaneRows x"
LANES = "largest = fmaxf(largest, shuffle_xor(largest, 2));"


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("gemv.cu", GEMV_BARRIER, "    const LaneRows x", id="missing barrier"),
        pytest.param("attention_chunk.cuh", LANES, LANES.replace("2", "4"), id="wrong lanes"),
        pytest.param("gemm.cu", "wait_for_copies<STAGES - 2>();", "", id="missing wait for copies"),
        pytest.param(
            "attention_item.cuh",
            "shuffle(ids, place)",
            "shuffle(ids, place + 1)",
            id="off-by-one block table",
        ),
    ],
)
def test_results_show_a_bug(tmp_path: Path, right: list[Float32], file: str, old: str, new: str) -> None:
    found = answers(Bench(MutatedCard(tmp_path / "kernels", file, old, new)))
    assert isinstance(found, str) or are_wrong(found, right)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        pytest.param(
            "attention_chunk.cuh",
            LANES,
            f"if (lane != 5) {LANES}",
            "lane",
            id="lane mask without a lane",
        ),
        pytest.param(
            "gemv.cu",
            "    if (!EXPERTS) wait_for_previous_kernel();\n    stage",
            "    stage",
            "before",
            id="missing wait",
        ),
    ],
)
def test_the_engine_names_a_bug(tmp_path: Path, file: str, old: str, new: str, message: str) -> None:
    found = answers(Bench(MutatedCard(tmp_path / "kernels", file, old, new)))
    assert isinstance(found, str)
    assert message in found


INT8_BUGS = {
    "lanes of another group": (
        "rows_int8.cuh",
        "shuffle_xor(largest, lanes)",
        "shuffle_xor(largest, lanes / 2)",
    ),
    "a sum of too few codes": ("rows_int8.cuh", "sum += shuffle_xor(sum, 1);", ""),
    "scales of other columns": ("products_int8.cuh", "(lane_index() & 28) + 2 * s", "lane_index()"),
    "codes of another segment": ("products_int8.cuh", "lane_index() % 4 / 2 == s", "lane_index() % 2 == s"),
    "a scale of another row": (
        "rows.cuh",
        "(2 * t + 1 < num_rows ? 2 * t + 1 : 0)",
        "(2 * t < num_rows ? 2 * t : 0)",
    ),
    "missing wait": ("round_rows.cu", WAIT_OF_INT8, WAIT_OF_INT8.replace("wait_for_previous_kernel();", "")),
}
"""File, old text and new one."""


@pytest.mark.parametrize("bug", INT8_BUGS)
def test_bugs_of_rows_in_int8(tmp_path: Path, bug: str) -> None:
    def rows(card: SimulatedCard, count: int) -> Float32 | None:
        product = Products(256, ("q2_k", 40), card=card, activations="int8")
        try:
            product.run(product.product(), count)
            return product.read(2, count)
        except DeviceError:
            return None

    card = MutatedCard(tmp_path / "kernels", *INT8_BUGS[bug])
    for count in (3, 20):
        right, found = rows(SimulatedCard(), count), rows(card, count)
        assert right is not None
        if found is None or not np.array_equal(found, right):
            return
    pytest.fail("the bug was not found")


WARPGROUP_BUGS = {
    "missing wait for copies": ("wait_for_copies<AHEAD - 1>();", ""),
    "missing fence": ("publish_to_products();", ""),
    "missing barrier": ("block_barrier();", ""),
    "missing wait for one product": ("wait_for_products<1>();", ""),
    "missing wait for all products": ("wait_for_products<0>();", ""),
    "missing begin": ("begin_products(a[step % 2]);", ""),
    "a stage that is filled too early": ("AHEAD + GROUPS + 1", "AHEAD + GROUPS - 1"),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("bug", WARPGROUP_BUGS)
def test_bugs_of_warpgroups(tmp_path: Path, bug: str) -> None:
    def rows(card: SimulatedCard) -> Float32 | None:
        product = Products(1100, ("q8_g128", 130), card=card)
        try:
            for launch in tiled_launches(product.context, product.product(), 66, WarpgroupTile(2, 64, 2, 2)):
                card.launch(launch)
            return product.read(2, 66)
        except DeviceError:
            return None

    right = rows(SimulatedCard(num_processors=1))
    assert right is not None
    found = rows(MutatedCard(tmp_path / "kernels", "gemm_warpgroup.cu", *WARPGROUP_BUGS[bug]))
    assert found is None or not np.array_equal(found, right)


HYBRID = TinyModel(layers=3, hybrid=True, states="matrices", experts=5).plan()
HYBRID_STEPS = (
    step_of([(0, 20)], [[2, 3]], [[2, 3]], [[-1, 0]]),
    step_of([(20, 1)], [[2, 3]], [[2, 3]], [[0, 1]]),
    step_of([(21, 3)], [[2, 3]], [[2, 3]], [[1, 1]]),
)
"""A prompt, a token to another slot of the state, and a few tokens in place."""
NUMBERS = "    block_barrier();\n    int place = found"
SUM_WAIT = "(Route*)shared;\n    allow_next_kernel();\n    wait_for_previous_kernel();"
WKV_BARRIER = "const float value = own.value;\n        block_barrier();"
ROW_BARRIER = "const OwnRow now = own;\n        block_barrier();"
HYBRID_BUGS = {
    "few rows of another expert": ("gemv.cu", "group_of_block(args).member * args", "0 * args"),
    "many rows of another expert": ("gemm.cu", "group_of_block(args).member * output", "0 * output"),
    "rows before they are numbered": ("experts.cu", NUMBERS, "    int place = found"),
    "all rows of an expert in one place": ("experts.cu", "place += rows_of_range;", ""),
    "missing wait for experts": ("experts.cu", SUM_WAIT, "(Route*)shared;"),
    "a score that is chosen twice": ("router.cu", "a.place < b.place", "a.place <= b.place"),
    "lanes of another column": ("state_rows.cuh", "shuffle_xor(value, WARP / PARTS * 2)", "value"),
    "missing barrier of a row": ("state_rows.cuh", ROW_BARRIER, "const OwnRow now = own;"),
    "rows of another step": ("state_rows.cuh", "kept[(i64)(number + tap)", "kept[(i64)tap"),
    "rows that are kept too late": ("state_rows.cuh", "kept[(i64)(i + rows)", "kept[(i64)(i + rows - 1)"),
}
"""File, old text and new one."""
FEW_HYBRID_BUGS = {"rows before they are numbered", "lanes of another column", "rows of another step"}


SPACES = TinyModel(layers=4, hybrid=True, states="matrices").plan()
"""Its last layer is a state space."""
SPACE_BUGS = {
    "a time that is left out": ("state_space.cu", "args.shares[at] = time;", "args.shares[at] = 1.0f;"),
    "a row that skips nothing": ("state_space.cu", "fmaf(skip, x, read)", "read"),
    "a convolution without its bias": ("state_rows.cuh", "args.shifts[head.input][column]", "0.0f"),
}
RWKV = rwkv7.plan(tiny_model("rwkv7-odd").config, 64)
RWKV_STEPS = (
    step_of([(0, 20)], [[-1, 0]]),
    step_of([(20, 1)], [[0, 1]]),
    step_of([(21, 3)], [[1, 1]]),
)
RWKV_BUGS = {
    "missing barrier of a row": ("generalized_delta.cu", WKV_BARRIER, "const float value = own.value;"),
    "what is removed": ("generalized_delta.cu", "-found, state[n]", "found, state[n]"),
    "state of another op": ("generalized_delta.cu", " + args.offset;", ";"),
    "row before": ("token_shift.cu", "        before = here;\n", ""),
    "shares of another mix": ("token_shift.cu", "args.shares[i]", "args.shares[0]"),
}
HEAD_BUGS = {
    "slices of the first head": ("experts.cuh", "row * heads + group.member", "row * heads"),
    "few rows of the first matrix": ("gemv.cu", "HEADS ? block_y() : 0", "0"),
    "many rows of the first matrix": ("gemm.cu", "block_x() % args.heads", "0"),
}

ADAPTER_BUGS = {
    "rows of another item": ("adapt.cu", "rows[item.first + (n", "rows[(n"),
    "changes of the first adapter": (
        "adapt.cu",
        "args.values;\n    const Place place = place_of<true>",
        "0;\n    const Place place = place_of<true>",
    ),
    "middle of the first value": ("adapt.cu", "+ change.first + first + k]", "+ first + k]"),
    "missing barrier": ("adapt.cu", "block_barrier();\n        if (change.b", "if (change.b"),
    "no scale": ("adapt.cu", "change.scale, *out", "1.0f, *out"),
}

OF_BLOCK = "args.blocks[group_of_block(args).member]"
CACHED_BUGS = {
    "few rows of another block": ("gemv.cu", OF_BLOCK, "args.blocks[0]"),
    "many rows of another block": ("gemm.cu", OF_BLOCK, "args.blocks[0]"),
    "scales without their block": ("scales.cuh", "{arrays.scales + block / sizeof(half2)", "{arrays.scales"),
    "minimums of another block": ("scales.cuh", "arrays.minimums + block", "arrays.scales + block"),
}


def hybrid_answers(card: SimulatedCard, plan: ModelPlan = HYBRID) -> list[Float32] | str:
    return logits_or_error(card, plan, {0: 8, 1: 8, 2: 3}, HYBRID_STEPS)


@pytest.fixture(scope="module")
def right_hybrid() -> list[Float32]:
    found = hybrid_answers(SimulatedCard())
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(
    "bug",
    [pytest.param(b, marks=() if b in FEW_HYBRID_BUGS else pytest.mark.exhaustive) for b in HYBRID_BUGS],
)
def test_bugs_of_experts_and_states(tmp_path: Path, right_hybrid: list[Float32], bug: str) -> None:
    found = hybrid_answers(MutatedCard(tmp_path / "kernels", *HYBRID_BUGS[bug]))
    assert isinstance(found, str) or are_wrong(found, right_hybrid)


@pytest.mark.exhaustive
@pytest.mark.parametrize("bug", SPACE_BUGS)
def test_bugs_of_state_spaces(tmp_path: Path, bug: str) -> None:
    right = hybrid_answers(SimulatedCard(), SPACES)
    assert isinstance(right, list)
    assert are_wrong(hybrid_answers(MutatedCard(tmp_path / "kernels", *SPACE_BUGS[bug]), SPACES), right)


@pytest.mark.exhaustive
@pytest.mark.parametrize("bug", RWKV_BUGS)
def test_bugs_of_rwkv(tmp_path: Path, bug: str) -> None:
    assert_bug_is_found(tmp_path, RWKV_BUGS[bug], RWKV, {0: 2}, RWKV_STEPS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("bug", HEAD_BUGS)
def test_bugs_of_heads(tmp_path: Path, bug: str) -> None:
    card = MutatedCard(tmp_path / "kernels", *HEAD_BUGS[bug])
    right, wrong = Heads(20, 12, "f16"), Heads(20, 12, "f16", card=card)
    assert any(not np.array_equal(wrong.run(0, rows), right.run(0, rows)) for rows in (3, 20))


@pytest.mark.exhaustive
@pytest.mark.parametrize("bug", CACHED_BUGS)
def test_bugs_of_experts_in_blocks(tmp_path: Path, bug: str) -> None:
    right = Cached(0.3, fmt="q4_g32").answers()
    try:
        found = Cached(0.3, MutatedCard(tmp_path / "kernels", *CACHED_BUGS[bug]), fmt="q4_g32").answers()
    except DeviceError:
        return
    assert are_wrong(found, right)


@pytest.mark.exhaustive
@pytest.mark.parametrize("bug", ADAPTER_BUGS)
def test_bugs_of_adapters(tmp_path: Path, bug: str) -> None:
    def logits(card: SimulatedCard) -> list[Float32] | str:
        try:
            return [of_adapters(adapted=True, card=card).logits(step_with([1, -1, 0]))]
        except DeviceError as error:
            return str(error)

    right, found = logits(SimulatedCard()), logits(MutatedCard(tmp_path / "kernels", *ADAPTER_BUGS[bug]))
    assert isinstance(right, list)
    assert isinstance(found, str) or are_wrong(found, right)


def test_a_block_table_whose_width_is_off_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = StepMemory._pack_tables

    def narrow(self: StepMemory, out: Any, at: Mapping[str, int], first: int, step: Step) -> int:
        end = pack(self, out, at, first, step)
        out[at["table 0"] + 1] -= 1
        return end

    step = sequences([(0, 17), (0, 3)], [[2, 3], [4, 5]])
    right = Bench().logits(step)
    monkeypatch.setattr(StepMemory, "_pack_tables", narrow)
    assert are_wrong([Bench().logits(step)], [right])


def test_a_graph_that_reads_a_stale_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrays of a step move after a graph was captured, which goes on reading the old ones."""
    upload, kept = StepMemory.upload, []

    def moved(self: StepMemory, *arguments: Any) -> None:
        kept.append(self._arrays)
        self._arrays = self._runtime.allocate(self._arrays.num_bytes)
        upload(self, *arguments)

    bench, sound = Bench(), Bench()
    expected = [sound.logits(one(1, first, [2], seed=first)) for first in range(3)]
    bench.logits(one(1, 0, [2]))
    monkeypatch.setattr(StepMemory, "upload", moved)
    later = [bench.logits(one(1, first, [2], seed=first)) for first in (1, 2)]
    assert bench.card.num_graphs == 1
    assert are_wrong(later, expected[1:])
