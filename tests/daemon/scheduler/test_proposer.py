"""Proposed tokens: answers are the same as without, whatever is proposed."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Mapping, Sequence

import pytest

from llmd.api.messages import BeamParams, Grammar, StopParams, Submit, Vocabulary
from llmd.api.results import TokenOutput
from llmd.api.samplers import Dry, Mirostat, SamplingParams
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.core import EngineCore
from llmd.testing.plans import TinyModel
from tests.serving.cores import make_core, prompt

VOCAB = TinyModel().vocab
END = VOCAB - 1
VOCABULARY = Vocabulary(tuple(b"%c" % (97 + token % 26) for token in range(END)), (), (END,))
SAMPLED = [
    SamplingParams(seed=1, temperature=0.0),
    SamplingParams(seed=2, temperature=0.7, top_p=0.9, logprobs=2),
    SamplingParams(seed=3, temperature=0.6, presence_penalty=0.6, dry=Dry(0.8, 1.75, 1, 64)),
    SamplingParams(seed=4, temperature=0.0, repetition_penalty=1.3, bad_words=((4, 5), (6,))),
    SamplingParams(seed=5, mirostat=Mirostat(2)),
    SamplingParams(seed=6, temperature=0.9, allowed_ids=tuple(range(5, 40))),
    SamplingParams(seed=7, temperature=0.5),
    SamplingParams(seed=8, temperature=0.0, typical_p=0.8),
]


class Guesses:
    """Proposes the right next tokens of answers that it knows, up to a random place, then random ones."""

    def __init__(self, answers: Mapping[tuple[int, ...], Sequence[int]], chance: float) -> None:
        self._answers = answers
        self._chance = chance
        self._random = random.Random(5)
        self.proposed = 0

    def propose(self, tokens: Sequence[int], count: int) -> Sequence[int]:
        count = self._random.randint(0, count)
        self.proposed += count
        known = next(
            (rest for start, rest in self._answers.items() if tuple(tokens[: len(start)]) == start), ()
        )
        done = len(tokens) - next((len(s) for s in self._answers if tuple(tokens[: len(s)]) == s), 0)
        guesses = list(known[done : done + count])
        right = 0
        while right < len(guesses) and self._random.random() < self._chance:
            right += 1
        return guesses[:right] + [self._random.randrange(VOCAB) for _ in range(count - right)]


@pytest.fixture(params=[(1, ()), (2, ()), (4, ()), (2, (4,))], ids=str)
def flight(request: pytest.FixtureRequest) -> tuple[int, tuple[int, ...]]:
    """The steps in flight, and where the second stage begins."""
    found: tuple[int, tuple[int, ...]] = request.param
    return found


def requests() -> Iterator[Submit]:
    for number, sampling in enumerate(SAMPLED):
        grammar = Grammar("regex", "[a-m]{5,200}") if number in {0, 6} else None
        yield Submit(number, prompt(number, 5 + number), sampling, StopParams(30), grammar=grammar)
    yield Submit(20, prompt(20, 6), SamplingParams(seed=0), StopParams(8), beams=BeamParams(3, 2))


def answer(core: EngineCore) -> tuple[dict[int, list[TokenOutput]], list[object], int]:
    """Return the tokens of each request, the beams, and the number of steps."""
    core.set_vocabulary(VOCABULARY)
    for request in requests():
        core.submit(request)
    tokens: dict[int, list[TokenOutput]] = {}
    beams: list[object] = []
    while core.busy:
        output = core.step()
        assert not output.failed
        beams += output.beams
        for token in output.tokens:
            tokens.setdefault(token.request_id, []).append(token)
        core.pager.check_integrity()
    steps, used = core.report().steps, core.report().kv_blocks_used
    assert all(pool.num_free == pool.num_blocks for pool in core.pager.pools), used
    core.close()
    return tokens, beams, steps


@functools.cache
def without_proposals() -> tuple[dict[int, list[TokenOutput]], list[object], int]:
    return answer(make_core(ReferenceDevice(), depth=1, slots=6))


@pytest.mark.parametrize("blocks", [1 << 30, 60_000], ids=["much memory", "preemption"])
@pytest.mark.parametrize("draws", [False, True], ids=["host draws", "device draws"])
def test_answers_are_those_without_proposals(
    flight: tuple[int, tuple[int, ...]], blocks: int, *, draws: bool
) -> None:
    depth, cuts = flight
    expected, beams, steps = without_proposals()
    answers = {
        request.prompt: [token.token for token in expected[request.request_id]]
        for request in requests()
        if request.beams is None
    }
    for chance in (0.0, 0.8):
        guesses = Guesses(answers, chance)
        core = make_core(
            ReferenceDevice(),
            depth=depth,
            cuts=cuts,
            slots=6,
            budget_bytes=blocks,
            draws=draws,
            proposer=guesses,
            max_drafts=4,
        )
        found = answer(core)
        assert found[:2] == (expected, beams)
        assert guesses.proposed > 50
        if chance and depth == 1 and blocks > 1 << 20:
            assert found[2] < 0.8 * steps, "right proposals save steps"
