"""Several steps in flight: throughput on a simulated clock, and failures."""

from __future__ import annotations

import itertools

import pytest

from llmd.api import HOST_MEMORY, DeviceError, StageLimits
from llmd.api.messages import Grammar, StopParams, Submit, Vocabulary
from llmd.api.results import TokenOutput
from llmd.api.samplers import Dry, SamplingParams
from llmd.engine.core import EngineCore
from llmd.engine.limits import EngineLimits
from llmd.engine.placement.kv_budget import KVMemory, plan_kv
from llmd.engine.steps.pipeline import Pipeline
from llmd.engine.steps.step import InFlightStep, SampledTokens
from llmd.models.lowering import lower
from llmd.testing.null_device import NullDevice, NullStage
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource
from tests.daemon.engine.conftest import MakeCore
from tests.serving.cores import finish, ids, run, submit

SLOTS = 8
CUTS = {1: (), 2: (5,), 3: (3, 7), 4: (3, 5, 7)}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


def null_core(
    times: tuple[float, ...], depth: int, *, draws: bool = False
) -> tuple[EngineCore, list[NullStage], Clock]:
    """Return a core over stages that take these seconds for each step, on devices of their own.

    The last device can draw tokens; ``draws``: it does.
    """
    plan, clock = TinyModel(window=None, context_len=512).plan(), Clock()
    limits = EngineLimits(
        plan.vocab_size, 512, SLOTS, SLOTS, depth=depth, micro_batches=depth if len(times) > 1 else 1
    )
    memory = KVMemory(HOST_MEMORY, (1,), 1 << 30)
    budget = plan_kv(plan.groups, [memory], slots=SLOTS, context_len=512, chunk_len=limits.max_planned)
    stages = []
    for seconds, (first, last) in zip(
        times, itertools.pairwise((0, *CUTS[len(times)], len(plan.parts))), strict=True
    ):
        device = NullDevice(clock, step_s=seconds, pause=clock.pause, draws=True)
        program = lower(plan, first, last, format_of=lambda _kind, _ref: "f32")
        weights = device.load(program, RandomSource(), lambda _done, _total: None)
        blocks = {group.id: budget.num_blocks[group.id] for group in program.groups if group.layers}
        stages.append(weights.stage(blocks, StageLimits(1024, SLOTS + 1, SLOTS, "f32", tickets=depth)))
    core = EngineCore(Pipeline(stages, draws=draws), plan.groups, budget, limits)
    return core, stages, clock


MIXED = [
    SamplingParams(seed=0, temperature=0.0),
    SamplingParams(seed=1, temperature=0.9, top_p=0.95),
    SamplingParams(seed=2, temperature=1.5, min_p=0.05, top_k=40),
    SamplingParams(seed=3, temperature=0.8, presence_penalty=0.7, repetition_penalty=1.2),
    SamplingParams(seed=4, temperature=0.0, frequency_penalty=0.5, bad_words=((7,), (8, 9))),
    SamplingParams(seed=5, temperature=1.1, allowed_ids=tuple(range(3, 120, 2))),
    SamplingParams(seed=6, temperature=4.0, logprobs=2),
    SamplingParams(seed=7, temperature=1.0, dry=Dry(0.8, 1.75, 1, 64)),
]
VOCABULARY = Vocabulary(tuple(b"%c" % (97 + token % 26) for token in range(130)), (), (130,))


def answer_mixed(
    depth: int, *, draws: bool, host_s: float, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[int, list[TokenOutput]], float]:
    """Run `MIXED`, one of them under a grammar; the host needs ``host_s`` after each step.

    Returns:
        The outputs, and the seconds for which the device was idle.
    """
    core, stages, clock = null_core((1.0,), depth, draws=draws)
    draw = InFlightStep.draw

    def draw_slowly(step: InFlightStep) -> SampledTokens:
        drawn = draw(step)
        clock.now += host_s
        return drawn

    core.set_vocabulary(VOCABULARY)
    for number, sampling in enumerate(MIXED):
        grammar = Grammar("regex", "[a-m]{100}") if number == 2 else None
        core.submit(Submit(number, (1, 2, number), sampling, StopParams(60), grammar=grammar))
    while core._grammars._waiting:
        core._grammars.wait(20.0)
        for sequence in core._grammars.compiled():
            core._add(sequence)
    with monkeypatch.context() as patch:
        patch.setattr(InFlightStep, "draw", draw_slowly)
        outputs = finish(core)
    core.close()
    return outputs, stages[0].idle_s


def test_a_device_that_draws_needs_no_host_and_draws_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    by_host, idle_s = answer_mixed(2, draws=False, host_s=0.3, monkeypatch=monkeypatch)
    assert idle_s > 0.3 * 55, "each step waits for the host"
    assert [len(by_host[number]) for number in range(len(MIXED))] == [60] * len(MIXED)
    for depth in (2, 4):
        by_device, idle_s = answer_mixed(depth, draws=True, host_s=0.3, monkeypatch=monkeypatch)
        assert idle_s == 0.0
        assert by_device == by_host


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize(
    "times",
    [(1.0,), (1.0, 1.0), (1.0, 3.0), (2.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0), (0.5, 2.0, 1.0, 0.5)],
    ids=str,
)
def test_throughput_is_what_the_stages_allow(times: tuple[float, ...], depth: int) -> None:
    """At least 90 % of ``min(depth / time of a token, 1 / time of the slowest stage)``, in steps."""
    core, stages, clock = null_core(times, depth)
    for request_id in range(SLOTS):
        core.submit(Submit(request_id, (1, 2, 3), SamplingParams(0, 0.0), StopParams(400)))
    for _ in range(20):
        core.step()
    began, count = clock.now, 200
    tokens = sum(len(core.step().tokens) for _ in range(count))
    possible = min(depth / sum(times), 1 / max(times))
    assert count / (clock.now - began) >= 0.9 * possible
    micro_batches = depth if len(times) > 1 else 1
    assert tokens == pytest.approx(count * SLOTS / micro_batches, rel=0.02), "the sequences advance evenly"
    assert max(stage.most_in_flight for stage in stages) == min(depth, 4)


def test_no_more_steps_are_in_flight_than_the_depth_and_all_end(make_core: MakeCore) -> None:
    core = make_core()
    depth = core._limits.depth
    for request_id in (1, 2, 3):
        core.submit(submit(request_id, 30))
    while core.busy:
        core.step()
        assert len(core._in_flight) <= max(1, depth - 1)
    assert not len(core._in_flight)


def collect(core: EngineCore, outputs: list[TokenOutput]) -> None:
    while core.busy:
        outputs += core.step().tokens


@pytest.mark.parametrize("cuts", [(), (4,)], ids=["one stage", "two stages"])
def test_a_launch_that_fails_is_an_error_once_and_no_token_is_lost(
    make_core: MakeCore, monkeypatch: pytest.MonkeyPatch, cuts: tuple[int, ...]
) -> None:
    requests = [submit(number, 20, temperature=0.8) for number in (1, 2, 3)]
    expected = {number: ids(outputs) for number, outputs in run(make_core(cuts=cuts), *requests).items()}
    core = make_core(cuts=cuts)
    for request in requests:
        core.submit(request)
    outputs = [output for _ in range(3) for output in core.step().tokens]
    with monkeypatch.context() as patch:

        def fail(*_arguments: object) -> None:
            raise DeviceError("lost")

        patch.setattr(core._pipeline._stages[0], "submit", fail)
        with pytest.raises(DeviceError, match="lost"):
            collect(core, outputs)
    assert not len(core._in_flight)
    for rest in finish(core).values():
        outputs += rest
    got = {number: [one.token for one in outputs if one.request_id == number] for number in expected}
    assert got == expected
