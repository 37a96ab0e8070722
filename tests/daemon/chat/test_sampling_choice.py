from __future__ import annotations

from llmd.chat.generation_defaults import GenerationDefaults
from llmd.chat.sampling_choice import SamplingChoice


def test_requests_come_before_the_models_defaults_and_those_before_neutral_values() -> None:
    defaults = GenerationDefaults(temperature=0.6, top_p=0.9, repetition_penalty=1.1)
    params = SamplingChoice(top_p=0.5, logprobs=2).params(defaults, seed=9, choice=3)
    assert (params.temperature, params.top_p, params.top_k, params.min_p) == (0.6, 0.5, 0, 0.0)
    assert (params.repetition_penalty, params.frequency_penalty, params.logit_bias) == (1.1, 0.0, ())
    assert (params.seed, params.choice, params.logprobs) == (9, 3, 2)
    assert SamplingChoice(temperature=0.0).params(defaults, 0, 0).temperature == 0.0


def test_a_seed_is_cut_to_64_bits_and_drawn_where_there_is_none() -> None:
    assert SamplingChoice(seed=7).drawn_seed() == 7
    assert SamplingChoice(seed=-1).drawn_seed() == SamplingChoice(seed=(1 << 64) - 1).drawn_seed()
    assert SamplingChoice().drawn_seed() != SamplingChoice().drawn_seed()
