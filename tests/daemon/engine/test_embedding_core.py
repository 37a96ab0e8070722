from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import HOST_MEMORY, DeviceError, MemoryBudgetError, RequestError, StageLimits
from llmd.api.messages import EmbedText
from llmd.api.reports import SequenceState
from llmd.api.step import Selection, Step
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.embedding_core import EmbeddingCore
from llmd.engine.limits import MAX_TEXTS, EmbeddingLimits
from llmd.engine.placement.kv_budget import KVBudget, KVMemory, plan_kv
from llmd.engine.steps.pipeline import Pipeline, StepTickets
from llmd.models.headless import without_head
from llmd.models.lowering import lower
from llmd.testing.encoder_plan import TinyEncoder
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource
from tests.serving.cores import prompt


class Watched(Pipeline):
    """Records the steps, and fails those that a test selects."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline._stages)
        self.steps: list[list[int]] = []
        self.token_types: list[NDArray[np.int32] | None] = []
        self.fails = 0

    def submit(self, step: Step, selection: Selection | None) -> StepTickets:
        if self.fails:
            self.fails -= 1
            raise DeviceError("gone")
        self.steps.append(np.diff(step.row_offsets).tolist())
        self.token_types.append(step.token_types)
        return super().submit(step, selection)


def make_core(
    *, chunk_len: int = 64, context_len: int = 256, budget_bytes: int = 1 << 30, whole: bool = False
) -> tuple[EmbeddingCore, Watched]:
    plan = without_head(TinyModel(context_len=context_len).plan())
    limits = EmbeddingLimits(plan.vocab_size, context_len, chunk_len, whole)
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    parts = ReferenceDevice().load(program, RandomSource(), lambda _done, _total: None)
    budget = plan_kv(
        plan.groups,
        [KVMemory(HOST_MEMORY, tuple(parts.kv_bytes(g.id, "f32") for g in plan.groups), budget_bytes)],
        slots=1,
        context_len=limits.kv_len,
        chunk_len=limits.kv_chunk_len,
    )
    blocks = dict(enumerate(budget.num_blocks))
    pipeline = Watched(Pipeline([parts.stage(blocks, StageLimits(chunk_len, MAX_TEXTS, 1, "f32"))]))
    return EmbeddingCore(pipeline, plan.groups, budget, limits, ("mean",)), pipeline


def make_encoder_core() -> tuple[EmbeddingCore, Watched]:
    plan = TinyEncoder().plan()
    limits = EmbeddingLimits.of(plan, 32)
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    parts = ReferenceDevice().load(program, RandomSource(), lambda _done, _total: None)
    pipeline = Watched(Pipeline([parts.stage({}, StageLimits(limits.max_rows, MAX_TEXTS, 1, "f32"))]))
    budget = plan_kv((), (), slots=1, context_len=640, chunk_len=640)
    return EmbeddingCore(pipeline, (), budget, limits, ("mean",)), pipeline


def embed(core: EmbeddingCore, lengths: Sequence[int]) -> list[NDArray[np.float32]]:
    for number, length in enumerate(lengths):
        core.submit(EmbedText(number, prompt(number, length)))
    return finish(core)


def finish(core: EmbeddingCore) -> list[NDArray[np.float32]]:
    found: dict[int, NDArray[np.float32]] = {}
    while core.busy:
        found |= {one.request_id: np.frombuffer(one.vector, "<f4") for one in core.step().vectors}
    return [found[number] for number in sorted(found)]


def test_texts_share_steps_and_a_long_one_goes_on_in_the_next() -> None:
    core, pipeline = make_core(chunk_len=64)
    embed(core, [10, 20, 100, 5, 64])
    assert pipeline.steps == [[10, 20, 34], [64], [2, 5, 57], [7]]


def test_a_step_has_no_more_texts_than_the_stages_were_made_for() -> None:
    core, pipeline = make_core(chunk_len=200)
    embed(core, [1] * (MAX_TEXTS + 3))
    assert pipeline.steps == [[1] * MAX_TEXTS, [1] * 3]


def test_texts_that_must_be_whole_are_never_cut() -> None:
    core, pipeline = make_core(chunk_len=64, context_len=64, whole=True)
    embed(core, [40, 40, 20, 64])
    assert pipeline.steps == [[40], [40, 20], [64]]


def test_a_vector_is_the_same_alone_and_among_others_in_any_chunks() -> None:
    lengths = [10, 100, 33, 1]
    expected = []
    for number, length in enumerate(lengths):
        core, _ = make_core(chunk_len=200)
        core.submit(EmbedText(number, prompt(number, length)))
        expected.append(finish(core))
    for chunk_len in (7, 64, 200):
        together = embed(make_core(chunk_len=chunk_len)[0], lengths)
        assert all(np.array_equal(a, b[0]) for a, b in zip(together, expected, strict=True))


def test_groups_take_turns_however_many_texts_they_have() -> None:
    core, pipeline = make_core(chunk_len=64)
    for number in range(20):
        core.submit(EmbedText(number, prompt(number, 64), group=1))
    core.step()
    core.submit(EmbedText(100, prompt(1, 64), group=2))
    core.submit(EmbedText(101, prompt(2, 64), group=2))
    core.submit(EmbedText(102, prompt(3, 10), group=3))
    order = [one.request_id for _ in range(5) for one in core.step().vectors]
    assert order[:5] == [1, 100, 102, 2, 101]
    assert pipeline.steps[1:4] == [[64], [64], [10, 54]]
    core.cancel(101)
    assert len(finish(core)) == 20 - 3


def test_each_text_is_told_once_that_it_began() -> None:
    core, _ = make_core(chunk_len=32)
    for number, length in enumerate((10, 70)):
        core.submit(EmbedText(number, prompt(number, length)))
    started = [[one.request_id for one in core.step().started] for _ in range(3)]
    assert started == [[0, 1], [], []]
    assert not core.busy


def test_a_pool_too_small_for_two_runs_them_one_after_the_other() -> None:
    small, pipeline = make_core(chunk_len=64, budget_bytes=1 << 16)
    expected = embed(make_core(chunk_len=64)[0], [60, 60, 60])
    assert [v.tolist() for v in embed(small, [60, 60, 60])] == [v.tolist() for v in expected]
    assert len(pipeline.steps) > 2
    report = small.report()
    assert (report.kv_blocks_used, report.running, report.waiting) == (0, 0, 0)
    assert report.prompt_tokens == 180


def test_a_cancelled_text_frees_its_blocks() -> None:
    core, _ = make_core(chunk_len=32)
    core.submit(EmbedText(1, prompt(1, 100)))
    core.submit(EmbedText(2, prompt(2, 10)))
    core.step()
    assert (core.report().running, core.report().waiting) == (1, 1)
    assert core.report().kv_blocks_used > 0
    states = core.report(sequences=True).sequences
    assert states == (SequenceState(1, "prefill", None, 32, 4), SequenceState(2, "waiting", "earlier"))
    core.cancel(1)
    core.cancel(7)
    assert core.report().kv_blocks_used == 0
    assert len(finish(core)) == 1


def test_a_failed_step_can_be_repeated() -> None:
    expected = embed(make_core(chunk_len=32)[0], [10, 70])
    core, pipeline = make_core(chunk_len=32)
    for number, length in enumerate((10, 70)):
        core.submit(EmbedText(number, prompt(number, length)))
    found = {one.request_id: one.vector for one in core.step().vectors}
    pipeline.fails = 30
    for _ in range(pipeline.fails):
        with pytest.raises(DeviceError, match="gone"):
            core.step()
    while core.busy:
        found |= {one.request_id: one.vector for one in core.step().vectors}
    assert [found[0], found[1]] == [vector.tobytes() for vector in expected]


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_texts_begin_again_on_another_pipeline(steps: int) -> None:
    lengths = [10, 70, 20]
    expected = embed(make_core(chunk_len=32)[0], lengths)
    core, _ = make_core(chunk_len=32)
    for number, length in enumerate(lengths):
        core.submit(EmbedText(number, prompt(number, length)))
    found = {one.request_id: one.vector for _ in range(steps) for one in core.step().vectors}
    other, pipeline = make_core(chunk_len=32)
    assert core.rebuild(pipeline, KVBudget(tuple(p.num_blocks for p in other._pager.pools), 0, 256)) == ()
    while core.busy:
        found |= {one.request_id: one.vector for one in core.step().vectors}
    assert [found[number] for number in range(3)] == [vector.tobytes() for vector in expected]
    assert core.report().kv_blocks_used == 0


def test_texts_without_room_end_and_the_others_go_on() -> None:
    core, pipeline = make_core(chunk_len=32)
    for number, length in enumerate((10, 70)):
        core.submit(EmbedText(number, prompt(number, length)))
    core.step()
    (failed,) = core.rebuild(pipeline, KVBudget((4, 4), 0, 64))
    assert (failed.request_id, failed.error) == (1, "MemoryBudgetError")
    assert "holds 64" in failed.message
    assert not core.busy


@pytest.mark.parametrize(
    ("tokens", "part"), [((), "no tokens"), ((1,) * 257, "257 tokens"), ((131,), "131"), ((-1,), "-1")]
)
def test_what_can_never_run_is_refused(tokens: tuple[int, ...], part: str) -> None:
    core, _ = make_core()
    with pytest.raises(RequestError, match=part) as caught:
        core.submit(EmbedText(1, tokens))
    assert caught.value.hint
    assert not core.busy


def test_a_text_larger_than_the_pool_is_refused() -> None:
    core, _ = make_core(chunk_len=64, budget_bytes=1 << 15)
    with pytest.raises(MemoryBudgetError, match="the KV pool holds"):
        core.submit(EmbedText(1, prompt(1, 250)))


def test_tokens_of_a_second_text_are_of_another_type() -> None:
    core, pipeline = make_encoder_core()
    core.submit(EmbedText(0, prompt(0, 5)))
    core.submit(EmbedText(1, prompt(1, 4), second_at=3))
    core.submit(EmbedText(2, prompt(1, 4), second_at=0))
    one_type, two_types, other_type = finish(core)
    (types,) = pipeline.token_types
    assert types is not None
    assert types.tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert not np.array_equal(two_types, other_type)
    core.submit(EmbedText(0, prompt(0, 5)))
    assert np.array_equal(finish(core)[0], one_type)
    assert pipeline.token_types[-1] is None, "a step with one type has no token types"


def test_two_types_for_a_model_that_knows_one_are_refused() -> None:
    core, _ = make_core()
    with pytest.raises(RequestError, match="two types, but the model does not distinguish types"):
        core.submit(EmbedText(1, (5, 6), second_at=1))
    assert not core.busy
