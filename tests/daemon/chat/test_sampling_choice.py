from __future__ import annotations

from llmd.api.samplers import DEFAULT_ORDER, Dry, Mirostat
from llmd.chat.generation_defaults import GenerationDefaults
from llmd.chat.model_text import ModelText
from llmd.chat.sampling_choice import ALL_TOKENS, DryChoice, SamplingChoice


def test_requests_come_before_the_models_defaults_and_those_before_neutral_values() -> None:
    defaults = GenerationDefaults(temperature=0.6, top_p=0.9, repetition_penalty=1.1, typical_p=0.8)
    params = SamplingChoice(top_p=0.5, logprobs=2).params(defaults, seed=9, choice=3)
    assert (params.temperature, params.top_p, params.top_k, params.min_p) == (0.6, 0.5, 0, 0.0)
    assert (params.repetition_penalty, params.frequency_penalty, params.logit_bias) == (1.1, 0.0, ())
    assert (params.typical_p, params.order, params.penalty_last_n) == (0.8, DEFAULT_ORDER, None)
    assert (params.seed, params.choice, params.logprobs) == (9, 3, 2)
    assert SamplingChoice(temperature=0.0).params(defaults, 0, 0).temperature == 0.0


def test_a_seed_is_cut_to_64_bits_and_drawn_where_there_is_none() -> None:
    assert SamplingChoice(seed=7).drawn_seed() == 7
    assert SamplingChoice(seed=-1).drawn_seed() == SamplingChoice(seed=(1 << 64) - 1).drawn_seed()
    assert SamplingChoice().drawn_seed() != SamplingChoice().drawn_seed()


def test_what_a_list_of_samplers_lacks_is_off() -> None:
    choice = SamplingChoice(
        temperature=0.0, repetition_penalty=1.5, frequency_penalty=1.0, dry=DryChoice(0.8), top_k=3
    )
    listed = SamplingChoice(
        temperature=0.0,
        repetition_penalty=1.5,
        frequency_penalty=1.0,
        dry=DryChoice(0.8),
        top_k=3,
        samplers=("top_p", "top_k"),
    )
    every, some = (one.params(GenerationDefaults(), 0, 0) for one in (choice, listed))
    assert (every.temperature, every.repetition_penalty, every.frequency_penalty) == (0.0, 1.5, 1.0)
    assert every.dry == Dry(0.8, 1.75, 2, ALL_TOKENS)
    assert (some.temperature, some.repetition_penalty, some.frequency_penalty, some.dry) == (
        1.0,
        1.0,
        0.0,
        None,
    )
    assert some.order == ("top_p", "top_k")
    penalised = SamplingChoice(presence_penalty=0.5, samplers=("penalties", "dry", "temperature"))
    assert penalised.params(GenerationDefaults(), 0, 0).presence_penalty == 0.5
    assert penalised.params(GenerationDefaults(), 0, 0).order == ("temperature",)


def test_texts_become_tokens_of_the_model(text: ModelText) -> None:
    choice = SamplingChoice(dry=DryChoice(0.8, breakers=("\n",)), bad_words=("no",), mirostat=Mirostat(2))
    assert choice.names_tokens
    tokens = choice.tokens(text.tokenizer, text.grammars.vocabulary.tokens)
    params = choice.params(GenerationDefaults(), 0, 0, tokens)
    assert params.dry == Dry(0.8, 1.75, 2, ALL_TOKENS, break_ids=(ord("\n"),))
    assert set(params.bad_words) == {tuple(b"no"), tuple(b" no")}
    assert params.mirostat == Mirostat(2)
    assert not SamplingChoice(repetition_penalty=1.2, allowed_ids=(1,)).names_tokens
