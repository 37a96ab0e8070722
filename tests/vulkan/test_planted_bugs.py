"""Bugs that are planted in shaders and in the code that runs them are found, by wrong results."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from llmd.api import DeviceOptions, Selection, StageLimits, Step
from llmd.api.candidates import OutputRows
from llmd.api.draws import GREEDY, SAMPLED
from llmd.api.step import Float32
from llmd.testing.sources import RandomSource
from llmd_backend_vulkan import runtime, step_memory
from llmd_backend_vulkan.commands import Segment, Words
from llmd_backend_vulkan.device import VulkanDevice
from llmd_backend_vulkan.memory import Arena
from llmd_backend_vulkan.outputs import Outputs
from llmd_backend_vulkan.programs import Uses
from llmd_backend_vulkan.runtime import Recording, Runtime
from llmd_backend_vulkan.shaders import FOLDER, spirv
from llmd_backend_vulkan.stage import VulkanStage
from llmd_backend_vulkan.step_memory import StepLayout, table_name
from llmd_backend_vulkan.vulkan import PhysicalDevice
from tests.plugins.backend_cpu.workbench import select
from tests.plugins.backend_vulkan.outputs.test_outputs import LIMITS as CANDIDATES
from tests.plugins.backend_vulkan.outputs.test_outputs import Case, draws_of
from tests.plugins.backend_vulkan.outputs.test_outputs import logits as logits_of_rows
from tests.plugins.backend_vulkan.outputs.test_outputs import select as select_outputs
from tests.plugins.backend_vulkan.test_stage import small_model
from tools.shaders import COMPILER, digest, manifest

pytestmark = pytest.mark.timeout(120)

NEEDS_COMPILER = pytest.mark.skipif(shutil.which(COMPILER[0]) is None, reason="needs glslc")
LIMITS = StageLimits(max_rows=24, max_sequences=3, max_outputs=24)
ALL = np.arange(LIMITS.max_rows, dtype=np.int32)


def step_of(chunks: Sequence[tuple[int, int]], blocks: Sequence[Sequence[int]]) -> Step:
    """Return a step; of each sequence, ``chunks`` has the first position and the number of rows."""
    positions = np.concatenate([np.arange(first, first + rows, dtype=np.int32) for first, rows in chunks])
    width = max(map(len, blocks))
    table = np.array([[*one, *[-1] * (width - len(one))] for one in blocks], np.int32)
    return Step(
        token_ids=((positions * 7 + 3) % 131).astype(np.int32),
        positions=positions,
        row_offsets=np.cumsum([0, *(rows for _, rows in chunks)], dtype=np.int32),
        block_tables=(table, table),
        copies=np.zeros((0, 3), np.int32),
    )


STEPS = (
    step_of([(0, 20)], [[2, 3]]),
    step_of([(20, 1)], [[2, 3]]),
    step_of([(21, 3)], [[2, 3]]),
    step_of([(0, 17), (0, 3)], [[4, 5], [6, 7]]),
    step_of([(17, 1), (3, 1)], [[4, 5], [6, 7]]),
)
"""A prompt, a token, and a few; then two sequences. The keys of each are in two blocks."""


def logits(used: VulkanStage, step: Step) -> Float32:
    """Run a step; return the raw logits of all rows."""
    ticket = used.submit(step, None, select(step.num_rows))
    used.wait(ticket, 60.0)
    rows = used.raw_rows(ticket, ALL[: step.num_rows])
    used.release(ticket)
    return rows


def answers(device: VulkanDevice) -> list[Float32]:
    """Return the logits of all steps on a device."""
    weights = device.load(small_model(), RandomSource(), lambda _done, _total: None)
    opened = weights.stage({0: 9, 1: 9}, LIMITS)
    try:
        return [logits(opened, step) for step in STEPS]
    finally:
        opened.close()
        weights.close()


@pytest.fixture(scope="module")
def right(device: VulkanDevice) -> list[Float32]:
    return answers(device)


@pytest.fixture
def fresh(physical: PhysicalDevice) -> VulkanDevice:
    """The device with no shader prepared yet."""
    return VulkanDevice(physical, DeviceOptions())


def are_wrong(found: Sequence[Float32], right: Sequence[Float32]) -> bool:
    return any(not np.array_equal(mine, other) for mine, other in zip(found, right, strict=True))


def plant(monkeypatch: pytest.MonkeyPatch, folder: Path, file: str, old: str, new: str) -> set[str]:
    """Replace the only place of ``old`` in a file; return the names of the shaders that this changes."""
    shutil.copytree(FOLDER, folder)
    text = (folder / file).read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file} has changed: plant the bug again"
    (folder / file).write_text(text.replace(old, new), encoding="utf-8")
    compiled = manifest(FOLDER)
    changed: dict[str, bytes] = {}
    for source in folder.glob("*.comp"):
        if digest(source) != compiled[source.stem]:
            target = source.with_suffix(".spv")
            subprocess.run([*COMPILER, str(source), "-o", str(target)], check=True)
            changed[source.stem] = target.read_bytes()
    monkeypatch.setattr(runtime, "spirv", lambda name: changed.get(name) or spirv(name))
    return set(changed)


@NEEDS_COMPILER
def test_a_copy_of_the_shaders_gives_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: VulkanDevice, right: list[Float32]
) -> None:
    changed = plant(monkeypatch, tmp_path / "shaders", "linear.comp", "// the sums have been", "// they are")
    assert changed == {"linear"}
    assert not are_wrong(answers(fresh), right)


LANES = "        barrier();\n        uint column = first + r"
TILE = "load_weights(first_step);\n        barrier();"
HALVES = "mine;\n    for (uint others = THREADS / 2u; others > 0u; others /= 2u) {\n        barrier();\n        if (thread < others) {\n            precise"
SCORES = "softcap);\n    barrier();\n    if (thread < HEADS) {"


@NEEDS_COMPILER
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("linear.comp", LANES, LANES.replace("barrier();", ""), id="missing barrier"),
        pytest.param("linear_tiles.comp", TILE, TILE.replace("barrier();", ""), id="tile without a barrier"),
        pytest.param(
            "attention_span.glsl", SCORES, SCORES.replace("barrier();", ""), id="scores without a barrier"
        ),
        pytest.param("linear.comp", "other < LANES", "other + 1u < LANES", id="lane mask"),
        pytest.param("linear.comp", "[thread - lane + other]", "[thread - lane]", id="sum of another lane"),
        pytest.param("linear_tiles.comp", "+ LANES * (step_at", "+ (step_at", id="chunks of another lane"),
        pytest.param(
            "totals.glsl", HALVES, HALVES.replace("THREADS / 2u", "4u"), id="fixed size of subgroups"
        ),
        pytest.param(
            "attention_keys.glsl",
            "work[table_row + (at >> vector_bits)]",
            "work[table_row + (at + 1u >> vector_bits)]",
            id="off-by-one block table",
        ),
        pytest.param(
            "attention.comp",
            "min(spans.first + (span + 1u) * spans.size, seen)",
            "min(spans.first + (span + 1u) * spans.size, seen - 1u)",
            id="off-by-one mask",
        ),
        pytest.param(
            "attention_rows.comp",
            "ends[thread] = seen;",
            "ends[thread] = seen - 1u;",
            id="mask of a tile",
        ),
        pytest.param(
            "store_kv.comp",
            "(position & ((",
            "(position + 1u & ((",
            id="off-by-one slot of keys",
        ),
    ],
)
def test_results_show_a_bug_in_a_shader(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fresh: VulkanDevice,
    right: list[Float32],
    file: str,
    old: str,
    new: str,
) -> None:
    plant(monkeypatch, tmp_path / "shaders", file, old, new)
    assert are_wrong(answers(fresh), right)


@NEEDS_COMPILER
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("outputs_sort.glsl", "{\n            barrier();", "{", id="missing barrier"),
        pytest.param("outputs.glsl", "a.y > b.y", "a.y < b.y", id="higher id of equal logits"),
        pytest.param("outputs_draw.glsl", "key += uvec2", "key -= uvec2", id="wrong generator"),
        pytest.param("outputs_scan.comp", "min(vocab - first_id, PART)", "PART / 2u", id="part cut in half"),
    ],
)
def test_candidates_and_draws_show_a_bug_in_a_shader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, physical: PhysicalDevice, file: str, old: str, new: str
) -> None:
    plant(monkeypatch, tmp_path / "shaders", file, old, new)
    assert not outputs_agree(Case(Arena(Runtime(physical, "vulkan:0")), drawn(), logits_of_rows(6)))


def drawn() -> Selection:
    """Return a selection whose rows are greedy, drawn from the candidates, and drawn from all tokens."""
    few, all_tokens = (0.7, 0.7, 40.0, 1.0, -np.inf, -np.inf), (5.0, 5.0, np.inf, 1.0, -np.inf, -np.inf)
    draws = draws_of([few, few, few, few, all_tokens, all_tokens], [GREEDY] * 2 + [SAMPLED] * 4)
    return replace(select_outputs(6), draws=draws)


def outputs_agree(case: Case) -> bool:
    mine, defined = case.finish()
    return np.array_equal(mine.ids, defined.ids) and np.array_equal(mine.tokens, defined.tokens)  # type: ignore[arg-type]


def test_draws_agree_without_a_bug(arena: Arena) -> None:
    assert outputs_agree(Case(arena, drawn(), logits_of_rows(6)))


def test_a_block_table_whose_width_is_off_by_one(
    monkeypatch: pytest.MonkeyPatch, device: VulkanDevice, right: list[Float32]
) -> None:
    put_tables = step_memory._put_tables

    def narrow(out: Words, layout: StepLayout, *step: Any) -> int:
        end = put_tables(out, layout, *step)
        out[layout.places[table_name(0)] + 1] -= 1
        return end

    monkeypatch.setattr(step_memory, "_put_tables", narrow)
    assert are_wrong(answers(device), right)


def test_a_missing_barrier_between_dispatches(
    monkeypatch: pytest.MonkeyPatch, device: VulkanDevice, right: list[Float32]
) -> None:
    """Without a barrier, a device may run dispatches in another order. Lavapipe does not, so this does."""
    record = device.runtime.record_segments

    def backwards(segments: Sequence[Segment], *, keeps_times: bool = False) -> Recording:
        turned = [replace(one, phases=[phase[::-1] for phase in one.phases]) for one in segments]
        return record(turned, keeps_times=keeps_times)

    monkeypatch.setattr(device.runtime, "record_segments", backwards)
    assert not are_wrong(answers(device), right)
    monkeypatch.setattr(Uses, "of", lambda *_ops: Uses(frozenset(), frozenset()))
    assert are_wrong(answers(device), right)


def test_a_recording_that_reads_a_stale_buffer(monkeypatch: pytest.MonkeyPatch, arena: Arena) -> None:
    """The edits move to a larger buffer after a step was recorded, which goes on reading the old one."""
    edited = select_outputs(3, edits=300)

    def agree_after_a_step_without_edits() -> bool:
        case = Case(arena, select_outputs(3), logits_of_rows(3))
        case.finish()
        case.outputs.begin(edited)
        case.defined = OutputRows(logits_of_rows(3), edited, CANDIDATES.num_candidates)
        return outputs_agree(case)

    assert agree_after_a_step_without_edits()
    make_room = Outputs._make_room

    def kept(self: Outputs, num_words: int) -> None:
        recordings = dict(self._recordings)
        make_room(self, num_words)
        self._recordings.update(recordings)

    monkeypatch.setattr(Outputs, "_make_room", kept)
    assert not agree_after_a_step_without_edits()


def test_a_step_that_is_fed_from_another_ticket(
    monkeypatch: pytest.MonkeyPatch, device: VulkanDevice
) -> None:
    weights = device.load(small_model(), RandomSource(), lambda _done, _total: None)
    opened = weights.stage({0: 9, 1: 9}, LIMITS)

    def fed_logits(prompt: Step) -> Float32:
        first = opened.submit(prompt, None, select(20))
        fed = replace(STEPS[1], token_ids=np.array([-20], np.int32), feed=first)
        second = opened.submit(fed, None, select(1))
        opened.wait(second, 60.0)
        rows = opened.raw_rows(second, ALL[:1])
        opened.release(first)
        opened.release(second)
        return rows

    prompts = STEPS[0], replace(STEPS[0], token_ids=STEPS[0].token_ids + np.int32(1))
    expected = [fed_logits(prompt) for prompt in prompts]
    fed_from = VulkanStage._fed_from
    monkeypatch.setattr(VulkanStage, "_fed_from", lambda self, ticket: 1 - fed_from(self, ticket))
    assert are_wrong([fed_logits(prompt) for prompt in prompts], expected)
    opened.close()
    weights.close()
