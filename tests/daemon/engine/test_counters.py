"""Counters that an engine reports."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llmd.api.messages import StopParams
from llmd.api.samplers import SamplingParams
from llmd.engine.core import EngineCore
from llmd.engine.counters import Counters
from llmd.engine.step_reads import KVReads
from llmd.scheduler.chunk import Chunk, StepPlan
from llmd.scheduler.sequence import Sequence
from tests.serving.cores import run, submit

MakeCore = Callable[..., EngineCore]


def test_report_counts_steps_and_tokens_until_reset(make_core: MakeCore) -> None:
    core = make_core()
    run(core, submit(1, 300, max_tokens=3))
    report = core.report()
    assert (report.steps, report.prompt_tokens, report.output_tokens) == (4, 300, 3)
    assert report.prefill_s > 0
    assert report.decode_s > 0
    assert report.step_s is not None
    assert report.step_s > 0
    core.reset_counters()
    assert core.report().steps == 0


def chunk(prompt_len: int, start: int, count: int) -> Chunk:
    """Return a chunk of a sequence with five output tokens."""
    tokens = [7] * (prompt_len + 5)
    sequence = Sequence(1, tokens, prompt_len, SamplingParams(seed=0), StopParams(max_tokens=9))
    return Chunk(sequence, start, count, ends=start + count >= prompt_len)


DECODE = chunk(20, 20, 1)
READS = KVReads(((10, None),), 0)


@pytest.mark.parametrize(
    ("chunks", "prompt_tokens"),
    [
        ([chunk(1, 0, 1)], 1),
        ([chunk(20, 0, 16)], 16),
        ([chunk(20, 19, 1)], 1),
        ([DECODE, chunk(20, 19, 1)], 1),
        ([chunk(20, 0, 20), chunk(30, 16, 14), DECODE], 34),
    ],
)
def test_a_step_with_any_token_of_a_prompt_is_prefill(chunks: list[Chunk], prompt_tokens: int) -> None:
    counters = Counters(last_done=0.0)
    counters.count(StepPlan(chunks, []), 1, READS)
    assert counters.prompt_tokens == prompt_tokens
    assert counters.prefill_s > 0
    assert (counters.decode_s, counters.decode_steps, counters.decode_kv_bytes) == (0, 0, 0)


@pytest.mark.parametrize("chunks", [[DECODE], [DECODE, DECODE], [chunk(20, 20, 5)], [chunk(20, 24, 1)]])
def test_a_step_with_tokens_of_answers_alone_is_decode(chunks: list[Chunk]) -> None:
    counters = Counters(last_done=0.0)
    counters.count(StepPlan(chunks, []), 1, READS)
    assert (counters.prompt_tokens, counters.prefill_s, counters.decode_steps) == (0, 0, 1)
    assert counters.decode_s > 0
    assert counters.decode_kv_bytes == 10 * sum(one.start + one.count for one in chunks)
    assert counters.decode_rows == sum(one.count for one in chunks)
    is_single = counters.decode_rows == 1
    assert counters.single_steps == is_single
    assert counters.single_s == is_single * counters.decode_s


def test_cached_tokens_are_those_of_sequences_that_began() -> None:
    counters = Counters()
    counters.count(StepPlan([DECODE], [(DECODE.sequence, 16), (DECODE.sequence, 32)]), 2, READS)
    assert (counters.cached_tokens, counters.output_tokens, counters.steps) == (48, 2, 1)


def test_the_times_of_stages_are_added_until_the_model_is_placed_again() -> None:
    counters, single = Counters(), StepPlan([DECODE], [])
    for stages_s in ((1.0, 2.0), (), (0.5, 0.25)):
        counters.count(single, 1, READS, lambda stages_s=stages_s: stages_s)  # type: ignore[misc]
    counters.count(StepPlan([DECODE, DECODE], []), 2, READS, lambda: (9.0, 9.0))
    assert (counters.timed_steps, counters.stages_s) == (2, (1.5, 2.25))
    counters.placed()
    counters.count(single, 1, READS, lambda: (1.0, 1.0, 1.0))
    assert (counters.timed_steps, counters.stages_s) == (1, (1.0, 1.0, 1.0))
