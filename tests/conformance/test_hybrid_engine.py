"""An engine with a model that keeps states, chooses positions, or has vectors for several tokens, gives the
tokens of each sequence computed alone and in one step: in chunks, from snapshots, after preemptions, as forks
and beams, and after failed steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import Device, DeviceError, KVKind
from llmd.api.messages import BeamParams, StopParams, Submit
from llmd.api.results import TokenOutput
from llmd.api.samplers import SamplingParams
from llmd.api.step import BLOCK_LEN, Ticket
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.core import EngineCore
from llmd.engine.kv_spool import KVSpool
from llmd.pager.states import SNAPSHOT_LEN
from llmd.registry.spools import SpoolHeader
from llmd.sampling.beam_search import BeamSearch, Proposals
from llmd.testing.plans import TinyModel
from llmd.testing.runs import run
from llmd.testing.workload import Workload, all_at_once
from llmd_backend_cpu.device import CpuDevice
from tests.serving import cores
from tests.serving.cores import FamilyModel, choices, finish, ids, prompt, submit

MakeCore = Callable[..., EngineCore]
CONTEXT = 512


class Hybrid(NamedTuple):
    """A model that keeps more than keys and values, and the device that runs it."""

    device: Device
    model: TinyModel | FamilyModel
    tight_bytes: int | None
    """Memory of keys and values in which longer requests are preempted; None: it never lacks."""
    tight_for_beams: int | None
    """The same for searches."""
    kinds: tuple[KVKind, ...]
    """Those of the groups of its layers."""
    stages: Mapping[int, tuple[int, ...]]
    """By their number, the parts where those after the first stage begin."""

    @property
    def state_bytes(self) -> int:
        """Bytes of the states of a sequence in all layers."""
        return sum(len(group.layers) * group.state_bytes for group in self.model.plan().groups)

    def cached_of(self, length: int) -> int:
        """Return how much of a prefix of this length is found again."""
        unit = SNAPSHOT_LEN if "state" in self.kinds else BLOCK_LEN
        return length // unit * unit

    def logits(self, tokens: tuple[int, ...]) -> NDArray[np.float32]:
        """Return the logits ``[tokens, vocab]`` of a sequence that runs alone, in one step."""
        plan = msgspec.structs.replace(self.model, context_len=CONTEXT).plan()
        alone = Workload("alone", plan, 0, len(plan.parts), (tokens,))
        rows = run(self.device, alone, all_at_once(alone)).rows
        return np.array([rows[0, place] for place in range(len(tokens))])

    def check(self, request: Submit, outputs: list[TokenOutput]) -> None:
        """Check that greedy tokens are the best ones of the sequence computed alone."""
        tokens = ids(outputs)
        assert len(tokens) == request.stop.max_tokens
        rows = self.logits((*request.prompt, *tokens[:-1]))[len(request.prompt) - 1 :]
        assert tokens == rows.argmax(axis=1).tolist()


ANYWHERE = {1: (), 2: (4,), 3: (3, 6)}
BEFORE_HEAD = {1: (), 2: (4,), 3: (4,)}
BETWEEN_CHOICES = {1: (), 2: (8,), 3: (3, 9)}
BEHIND_TABLES = {1: (), 2: (5,), 3: (3, 6)}
MODELS: Mapping[str, Callable[[], Hybrid]] = {
    "recurrences": lambda: Hybrid(
        ReferenceDevice(),
        TinyModel(hybrid=True),
        218_000,
        238_000,
        ("paged", "paged", "state"),
        ANYWHERE,
    ),
    "matrices and experts": lambda: Hybrid(
        CpuDevice(threads=1),
        cores.HYBRID_MIXTURE,
        343_000,
        421_000,
        ("paged", "paged", "state"),
        ANYWHERE,
    ),
    "state spaces": lambda: Hybrid(
        CpuDevice(threads=1),
        FamilyModel("nemotron-h-moe"),
        519_000,
        836_000,
        ("state", "paged"),
        ANYWHERE,
    ),
    "states beside latent vectors": lambda: Hybrid(
        CpuDevice(threads=1),
        FamilyModel("kimi-linear"),
        632_000,
        1_211_000,
        ("state", "latent"),
        ANYWHERE,
    ),
    "states alone": lambda: Hybrid(
        CpuDevice(threads=1),
        FamilyModel("rwkv7"),
        None,
        None,
        ("state",),
        BEFORE_HEAD,
    ),
    "chosen positions": lambda: Hybrid(
        CpuDevice(threads=1),
        cores.CHOOSING,
        1_220_000,
        1_340_000,
        ("latent", "latent"),
        BETWEEN_CHOICES,
    ),
    "vectors for several tokens": lambda: Hybrid(
        CpuDevice(threads=1),
        cores.COMPRESSED,
        1_450_000,
        1_650_000,
        ("latent",) * 7,
        BEHIND_TABLES,
    ),
}


WITH_KEYS = [name for name in MODELS if name != "states alone"]
"""Those whose memory grows with a sequence."""


@pytest.fixture(params=MODELS, scope="module")
def hybrid(request: pytest.FixtureRequest) -> Hybrid:
    """The reference with the simplest recurrence, and the CPU with models as people run them."""
    return MODELS[request.param]()


@pytest.fixture(params=cores.STEPS_IN_FLIGHT)
def make_core(request: pytest.FixtureRequest, hybrid: Hybrid) -> MakeCore:
    """Return a function that builds a core of the hybrid model, in each of `STEPS_IN_FLIGHT`."""
    depth, draws = request.param

    def make(kv_bytes: int | None = None, **options: Any) -> EngineCore:
        """``kv_bytes`` is memory beside that of states, of which each step in flight has some."""
        if kv_bytes is not None:
            options["budget_bytes"] = kv_bytes + depth * options["slots"] * hybrid.state_bytes
        return cores.make_core(hybrid.device, depth=depth, draws=draws, model=hybrid.model, **options)

    return make


def answers(core: EngineCore, *requests: Submit) -> dict[int, list[TokenOutput]]:
    """Run requests to their end; the pager must then hold nothing but its cache."""
    found = cores.run(core, *requests)
    check_freed(core)
    return found


def check_freed(core: EngineCore) -> None:
    core.pager.check_integrity()
    assert core.report().kv_blocks_used == 0


REQUESTS = (submit(1, 5), submit(2, 300), submit(3, 40), submit(4, 1), submit(5, 270))


@pytest.mark.parametrize("stages", [1, 3], ids=["one stage", "three stages"])
@pytest.mark.parametrize("chunk_len", [48, 256])
def test_requests_run_together_in_chunks(
    make_core: MakeCore, hybrid: Hybrid, chunk_len: int, stages: int
) -> None:
    found = answers(make_core(slots=3, chunk_len=chunk_len, cuts=hybrid.stages[stages]), *REQUESTS)
    for request in REQUESTS:
        hybrid.check(request, found[request.request_id])


def test_what_is_kept_changes_the_tokens(hybrid: Hybrid) -> None:
    """Without it the model would say something else: the oracle is no empty one."""
    whole = hybrid.logits(prompt(2, 60))
    assert not np.allclose(whole[30:], hybrid.logits(prompt(2, 60)[30:]), atol=0.1)
    plan = hybrid.model.plan()
    assert tuple(group.kind for group in plan.groups) == hybrid.kinds


@pytest.mark.parametrize("chunk_len", [100, 256])
def test_a_shared_prefix_is_found_up_to_its_last_block_or_snapshot(
    make_core: MakeCore, hybrid: Hybrid, chunk_len: int
) -> None:
    core, shared = make_core(chunk_len=chunk_len), prompt(9, 290)
    tails = [prompt(n, 20) for n in range(3)]
    requests = [
        msgspec.structs.replace(submit(n, 1), prompt=(*shared, *tail)) for n, tail in enumerate(tails)
    ]
    requests += [msgspec.structs.replace(submit(7, 1), prompt=(*shared[:250], 1, 2, 3))]
    cached = []
    for request in requests:
        before = core.report().cached_tokens
        hybrid.check(request, answers(core, request)[request.request_id])
        cached.append(core.report().cached_tokens - before)
    assert cached == [0, *map(hybrid.cached_of, (290, 290, 250))]


def test_an_answer_is_found_by_the_next_turn(make_core: MakeCore, hybrid: Hybrid) -> None:
    core, request = make_core(), submit(1, SNAPSHOT_LEN - 10, max_tokens=20)
    tokens = ids(answers(core, request)[1])
    turn = msgspec.structs.replace(submit(2, 1), prompt=(*request.prompt, *tokens, 5, 6, 7))
    hybrid.check(turn, answers(core, turn)[2])
    assert core.report().cached_tokens == SNAPSHOT_LEN


@pytest.mark.parametrize("hybrid", WITH_KEYS, indirect=True)
@pytest.mark.parametrize("stages", [1, 2], ids=["one stage", "two stages"])
def test_tokens_do_not_depend_on_preemption(make_core: MakeCore, hybrid: Hybrid, stages: int) -> None:
    """The pools hold little more than one of the requests."""
    requests = [submit(n, 240, max_tokens=40) for n in range(1, 5)]
    core = make_core(slots=4, kv_bytes=hybrid.tight_bytes, cuts=hybrid.stages[stages])
    found = answers(core, *requests)
    assert core.report().preemptions >= 2
    assert core.report().cached_tokens > 0, "a preempted sequence found a snapshot"
    for request in requests:
        hybrid.check(request, found[request.request_id])


@pytest.mark.parametrize("length", [60, 300], ids=["one chunk", "two chunks"])
def test_answers_to_one_prompt_share_its_prefill(make_core: MakeCore, hybrid: Hybrid, length: int) -> None:
    requests = choices(submit(1, length, temperature=1.3), 4)
    alone = {n: answers(make_core(), request)[n] for n, request in enumerate(requests)}
    core = make_core()
    assert answers(core, *requests) == alone
    assert core.report().prompt_tokens == length
    assert len({tuple(ids(tokens)) for tokens in alone.values()}) > 1
    greedy = choices(submit(1, length), 3)
    for request, tokens in zip(greedy, answers(core, *greedy).values(), strict=True):
        hybrid.check(request, tokens)


def search(request_id: int, length: int, max_tokens: int) -> Submit:
    sampling, stop = SamplingParams(seed=0), StopParams(max_tokens)
    return Submit(request_id, prompt(request_id, length), sampling, stop, beams=BeamParams(3, 3))


def best_beams(hybrid: Hybrid, request: Submit) -> list[tuple[int, ...]]:
    """Search with each beam computed alone, in one step."""
    assert request.beams is not None
    beams = BeamSearch(request.beams, request.stop)
    while beams.live:
        beams.advance([proposals(hybrid, request, beam.tokens, beams.num_proposals) for beam in beams.live])
    return [one.tokens for one in beams.best]


def proposals(hybrid: Hybrid, request: Submit, output: tuple[int, ...], count: int) -> Proposals:
    last = hybrid.logits((*request.prompt, *output))[-1].astype(np.float64)
    scores = last - np.log(np.exp(last).sum())
    best = np.argsort(-scores, kind="stable")[:count].tolist()
    return Proposals(best, scores[best].tolist())


def searched(core: EngineCore, *requests: Submit) -> dict[int, list[tuple[int, ...]]]:
    for request in requests:
        core.submit(request)
    found: dict[int, list[tuple[int, ...]]] = {}
    while core.busy:
        found |= {one.request_id: [h.tokens for h in one.hypotheses] for one in core.step().beams}
    check_freed(core)
    return found


def test_beams_are_those_of_each_beam_computed_alone(make_core: MakeCore, hybrid: Hybrid) -> None:
    request = search(1, 20, max_tokens=8)
    assert searched(make_core(), request)[1] == best_beams(hybrid, request)


@pytest.mark.parametrize("hybrid", WITH_KEYS, indirect=True)
def test_beams_do_not_depend_on_preemption(make_core: MakeCore, hybrid: Hybrid) -> None:
    requests = [search(n, 240, max_tokens=40) for n in range(1, 4)]
    small, large = make_core(slots=9, kv_bytes=hybrid.tight_for_beams), make_core(slots=9)
    assert searched(small, *requests) == searched(large, *requests)
    assert small.report().preemptions >= 2
    assert large.report().preemptions == 0


def test_cancelling_frees_slots_in_every_phase(make_core: MakeCore, hybrid: Hybrid) -> None:
    core = make_core(slots=3)
    core.submit(submit(1, 4))
    core.submit(submit(2, 400))
    core.submit(search(3, 20, max_tokens=8))
    core.submit(submit(4, 4))
    core.step()
    for request_id in (4, 3, 2, 1):  # waiting, a search, in prefill, decoding
        core.cancel(request_id)
        core.pager.check_integrity()
    assert not finish(core)
    check_freed(core)
    hybrid.check(REQUESTS[2], answers(core, REQUESTS[2])[3])


@pytest.mark.parametrize("stages", [1, 2], ids=["one stage", "two stages"])
@pytest.mark.parametrize("call", ["submit", "wait"])
@pytest.mark.parametrize("after", [0, 2, 7])
def test_a_failed_step_is_repeated_from_the_state_before_it(
    make_core: MakeCore,
    hybrid: Hybrid,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
    call: str,
    stages: int,
) -> None:
    requests = [*choices(submit(3, 70), 2), submit(2, 20), submit(3, 90)]
    core = make_core(cuts=hybrid.stages[stages], chunk_len=40)
    for request in requests:
        core.submit(request)
    found: dict[int, list[TokenOutput]] = {request.request_id: [] for request in requests}

    def step() -> None:
        for token in core.step().tokens:
            found[token.request_id].append(token)

    for _ in range(after):
        step()
    last = core._pipeline._stages[-1]
    with monkeypatch.context() as patch:

        def fail(ticket: Ticket, *_arguments: object) -> None:
            if call == "wait":
                last.release(ticket)  # as the contract requires
            raise DeviceError("lost")

        patch.setattr(last, call, fail)
        with pytest.raises(DeviceError, match="lost"):
            step_for_ever(step)
    core.pager.check_integrity()
    while core.busy:
        step()
    check_freed(core)
    for request in requests:
        hybrid.check(request, found[request.request_id])


def step_for_ever(step: Callable[[], None]) -> None:
    while True:
        step()


class LastToken:
    """Proposes that the last token is repeated, which is mostly wrong."""

    def propose(self, tokens: Sequence[int], count: int) -> Sequence[int]:
        return (tokens[-1],) * count


def test_tokens_do_not_depend_on_rejected_drafts(make_core: MakeCore, hybrid: Hybrid) -> None:
    """A model with states has no drafts: they could not be taken back."""
    request = submit(1, 40)
    hybrid.check(request, answers(make_core(proposer=LastToken(), max_drafts=3), request)[1])


def test_forward_gives_the_logits_of_the_sequence_alone(make_core: MakeCore, hybrid: Hybrid) -> None:
    core, tokens = make_core(), prompt(1, 90)
    assert np.array_equal(core.forward(np.array(tokens)), hybrid.logits(tokens))
    check_freed(core)


def test_blocks_and_snapshots_are_spooled(make_core: MakeCore, hybrid: Hybrid, tmp_path: Path) -> None:
    request, header = submit(1, 300), SpoolHeader("model", "fingerprint")

    def spool(core: EngineCore) -> KVSpool:
        return KVSpool(tmp_path / "spool", header, core.pager, core._pipeline, 1 << 30)

    before, after = make_core(), make_core()
    expected = answers(before, request)
    spool(before).save(lambda: False)
    spool(after).load()
    assert answers(after, request) == expected
    assert after.report().cached_tokens == hybrid.cached_of(299)
    hybrid.check(request, expected[1])
