from __future__ import annotations

from llmd.api.messages import BeamParams, Grammar, SamplingParams, StopParams, Submit
from llmd.server.engines.token_request import TokenRequest

SAMPLING, STOP = SamplingParams(seed=1), StopParams(9)


def test_every_field_reaches_the_engine() -> None:
    grammar, beams = Grammar("regex", "a"), BeamParams(3, 2)
    request = TokenRequest((1, 2), SAMPLING, STOP, grammar, 5, "salt", 4, beams)
    assert request.submit(7) == Submit(
        7,
        (1, 2),
        SAMPLING,
        STOP,
        priority=5,
        cache_salt="salt",
        grammar=grammar,
        prompt_logprobs=4,
        beams=beams,
    )


def test_a_search_runs_as_many_sequences_as_it_has_beams() -> None:
    assert TokenRequest((1,), SAMPLING, STOP).width == 1
    assert TokenRequest((1,), SAMPLING, STOP, beams=BeamParams(3)).width == 3
