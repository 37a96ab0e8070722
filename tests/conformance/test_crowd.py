"""Sixty-four streams of every kind at once, in a pool that preempts dozens of times:
each gives what it gives alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest

from llmd.api.messages import BeamParams, Grammar, StopParams, Submit, Vocabulary
from llmd.api.results import Hypothesis
from llmd.api.samplers import SamplingParams
from llmd.engine.core import EngineCore
from llmd.grammar.json_schema import schema_grammar
from llmd.testing.plans import TinyModel
from llmd_backend_cpu.device import CpuDevice
from tests.serving import cores
from tests.serving.cores import FamilyModel, make_core

STREAMS = 64
WIDTH = 3
BEAMS = (
    None,
    None,
    None,
    BeamParams(WIDTH, WIDTH),
    None,
    BeamParams(WIDTH, 1, 0.0, early_stopping=True),
    None,
)
END = 128
VOCABULARY = Vocabulary(tuple(bytes([value]) for value in range(128)), (), (END,))
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "ages": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["name", "ages"],
}
GRAMMARS = (None, None, schema_grammar(SCHEMA), None, Grammar("regex", "(ab|cd){3,20}[0-9]"), None, None)
SAMPLINGS = (
    {"temperature": 0.0},
    {"temperature": 0.9, "top_p": 0.9},
    {"temperature": 1.4, "top_k": 7, "logprobs": 3},
    {"temperature": 0.8, "repetition_penalty": 1.3, "presence_penalty": 0.4},
    {"temperature": 0.0, "frequency_penalty": 0.7},
    {"temperature": 1.0, "min_p": 0.05, "logit_bias": ((5, 4.0),)},
)


def streams(*, cached: bool) -> list[Submit]:
    """Requests of mixed lengths; some share a prefix, some a whole prompt, some end early,
    some are urgent.
    """
    generator = np.random.default_rng(7)
    vocab = TinyModel().vocab
    stem = generator.integers(0, vocab, 60).tolist()
    requests: list[Submit] = []
    for n in range(STREAMS):
        own = generator.integers(0, vocab, int(generator.choice((1, 3, 17, 40)))).tolist()
        prompt = own if n % 4 else stem[: int(generator.integers(20, 60))] + own
        if n % 8 == 7:
            prompt = list(requests[-1].prompt)
        sampling = SamplingParams(n, **SAMPLINGS[n % len(SAMPLINGS)], choice=n % 2)
        stop_ids = tuple(generator.integers(0, vocab, 3).tolist()) if n % 4 == 0 else ()
        grammar = GRAMMARS[n % len(GRAMMARS)]
        beams = BEAMS[n % len(BEAMS)]
        max_tokens = int(generator.integers(40, 130))
        if beams is not None:  # as long as the pool allows, so that some searches are preempted
            max_tokens = 24 if len(prompt) > 32 else 48
        stop = StopParams(max_tokens, (*stop_ids, END) if grammar else stop_ids, n % 3)
        requests.append(
            Submit(
                n,
                tuple(prompt),
                sampling,
                stop,
                priority=int(n % 10 == 0),
                cache_salt="" if cached else str(n),
                grammar=grammar,
                beams=beams,
            )
        )
    return requests


def cancelled() -> dict[int, int]:
    """The step before which some streams are cancelled."""
    return {n: 3 * n for n in range(0, STREAMS, 9)}


Tokens = dict[int, list[object]]


def crowd(
    core: EngineCore, requests: list[Submit], leaving: Mapping[int, int] = MappingProxyType({})
) -> tuple[Tokens, Counter[int]]:
    """All at once, a few of them arriving later, some cancelled on the way;
    also how often each began to run.
    """
    tokens: defaultdict[int, list[object]] = defaultdict(list)
    begun: Counter[int] = Counter()
    arriving = list(requests)
    core.set_vocabulary(VOCABULARY)
    for step in range(10_000):
        for request in arriving[: 5 if step else 40]:
            core.submit(request)
        del arriving[: 5 if step else 40]
        for n, at in leaving.items():
            if step == at:
                core.cancel(n)
        if not (core.busy or arriving):
            break
        output = core.step()
        assert not output.failed
        begun.update(started.request_id for started in output.started)
        for token in output.tokens:
            tokens[token.request_id].append((token.token, token.finish, token.logprobs))
        for ended in output.beams:
            tokens[ended.request_id] += ended.hypotheses
    return tokens, begun


@pytest.fixture(scope="module")
def cpu() -> CpuDevice:
    return CpuDevice(threads=1)


@pytest.fixture(scope="module")
def alone(cpu: CpuDevice) -> Tokens:
    """What each stream gives in an engine that has nothing else to do."""
    return all_alone(cpu, cores.SMALL)


def all_alone(cpu: CpuDevice, model: TinyModel | FamilyModel) -> Tokens:
    core = make_core(cpu, depth=1, slots=WIDTH, model=model)
    return {
        request.request_id: crowd(core, [request])[0][request.request_id] for request in streams(cached=False)
    }


@pytest.mark.timeout(120)
@pytest.mark.parametrize("depth", [1, 2], ids=["one step", "two steps"])
@pytest.mark.parametrize("cached", [True, False], ids=["prefix cache", "no prefix cache"])
@pytest.mark.parametrize("chunk_len", [5, 64, 256])
def test_each_stream_gives_what_it_gives_alone(
    cpu: CpuDevice, alone: Tokens, chunk_len: int, *, cached: bool, depth: int
) -> None:
    core = make_core(cpu, depth=depth, slots=32, budget_bytes=250_000, chunk_len=chunk_len)
    check(core, alone, cached=cached)
    assert core.report().cached_tokens > 0


@pytest.mark.timeout(120)
def test_streams_of_a_hybrid_mixture_give_what_they_give_alone(cpu: CpuDevice) -> None:
    """States are forked, preempted and snapshot; each row uses experts of its own."""
    model = cores.HYBRID_MIXTURE
    core = make_core(cpu, depth=2, slots=32, budget_bytes=830_000, chunk_len=64, model=model)
    check(core, all_alone(cpu, model), cached=True)


@pytest.mark.timeout(240)
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("model", "budget_bytes"),
    [(cores.CHOOSING, 700_000), (cores.COMPRESSED, 1_000_000)],
    ids=["chosen positions", "vectors for several tokens"],
)
def test_streams_of_models_with_other_attention_give_what_they_give_alone(
    cpu: CpuDevice, model: FamilyModel, budget_bytes: int
) -> None:
    core = make_core(cpu, depth=2, slots=32, budget_bytes=budget_bytes, chunk_len=64, model=model)
    check(core, all_alone(cpu, model), cached=True)


def check(core: EngineCore, alone: Tokens, *, cached: bool) -> None:
    together, begun = crowd(core, streams(cached=cached), cancelled())
    searches = [n for n, tokens in alone.items() if isinstance(tokens[0], Hypothesis)]
    assert len(searches) >= 16
    for n, tokens in alone.items():
        got = together[n]
        assert got == tokens[: len(got)]
        assert len(got) == len(tokens) or n in cancelled()
    report = core.report()
    assert report.preemptions >= 16
    assert any(begun[n] > 1 for n in searches)
    assert report.kv_blocks_used == 0
