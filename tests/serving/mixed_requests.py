"""Requests of every kind that run together, and what they get."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import msgspec

from llmd.api.errors import DeviceError
from llmd.api.messages import BeamParams, Grammar, Submit, Vocabulary
from llmd.api.results import BeamOutput, Failed, TokenOutput
from llmd.api.samplers import Dry, Mirostat, SamplingParams
from llmd.engine.core import EngineCore
from tests.serving.cores import submit

NUM_STREAMS = 32
VOCABULARY = Vocabulary(tuple(bytes([value]) for value in range(128)), (), (128,))
Answers = dict[int, list[TokenOutput | BeamOutput | Failed]]

_SAMPLED = (
    SamplingParams(seed=1, temperature=0.9, top_p=0.95),
    SamplingParams(seed=2, mirostat=Mirostat(2, tau=4.0)),
    SamplingParams(seed=3, dry=Dry(0.8, 1.75, 1, 64), repetition_penalty=1.1, temperature=1.2),
    SamplingParams(seed=4, logit_bias=((7, 2.0),), frequency_penalty=0.5),
)


def mixed_requests() -> list[Submit]:
    """Return 32 requests: greedy, sampled, siblings, with grammars, scored prompts, and beam searches."""
    mixed = [submit(0, length, max_tokens=20, logprobs=2) for length in (5, 300, 17, 1)]
    mixed += [_with(submit(0, 20 + n, max_tokens=16), sampling=one) for n, one in enumerate(_SAMPLED)]
    for count, length in ((5, 60), (4, 290)):  # siblings
        parent = submit(1, length, temperature=1.3)
        mixed += [
            _with(parent, sampling=msgspec.structs.replace(parent.sampling, choice=n)) for n in range(count)
        ]
    bound = Grammar("regex", "(ab|cd){2,9}[0-9]")
    mixed += [_with(submit(n, 9, max_tokens=20, temperature=n % 2), grammar=bound) for n in range(7)]
    mixed += [_with(submit(n, 30 + n, max_tokens=4), prompt_logprobs=2) for n in range(3)]
    mixed += [_with(submit(n, 40, max_tokens=12), beams=BeamParams(3, 2)) for n in range(3)]
    mixed += [_with(submit(9, 9, max_tokens=16), grammar=bound, beams=BeamParams(2))]
    mixed += [submit(50, 7, max_tokens=25)]
    assert len(mixed) == NUM_STREAMS
    return [_with(one, request_id=number) for number, one in enumerate(mixed)]


def answers(
    core: EngineCore,
    recover: Callable[[DeviceError], tuple[Failed, ...]] | None = None,
    after_step: Callable[[], None] = lambda: None,
) -> Answers:
    """Run all streams; ``recover`` is called when a step fails, ``after_step`` after each other step."""
    core.set_vocabulary(VOCABULARY)
    for request in mixed_requests():
        core.submit(request)
    found: Answers = defaultdict(list)
    while core.busy:
        try:
            output = core.step()
        except DeviceError as error:
            if recover is None:
                raise
            for failed in recover(error):
                found[failed.request_id or 0].append(failed)
        else:
            for token in output.tokens:
                found[token.request_id].append(token)
            for beams in output.beams:
                found[beams.request_id].append(beams)
            for failed in output.failed:
                found[failed.request_id or 0].append(failed)
            after_step()
    return found


def _with(request: Submit, **changes: object) -> Submit:
    return msgspec.structs.replace(request, **changes)
