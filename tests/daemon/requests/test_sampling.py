from __future__ import annotations

from typing import Any

import pytest

from llmd.api.samplers import DEFAULT_ORDER, Dry, DynamicTemperature, Mirostat, Xtc
from llmd.chat.generation_defaults import GenerationDefaults
from llmd.chat.model_text import ModelText
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.requests.named_tokens import ALL_TOKENS, DryChoice
from llmd.requests.number import Number
from llmd.requests.sampling import READERS, SamplingChoice, SamplingOptions, read_sampling
from tests.serving.http import chat
from tests.serving.running import RunningDaemon

NOTHING = SamplingChoice()


def read(**body: Any) -> SamplingChoice:
    fields = RequestFields(body)
    found = read_sampling(fields)
    assert fields.ignored == ()
    return found


def test_absent_fields_switch_nothing_on() -> None:
    assert read() == NOTHING


@pytest.mark.parametrize(
    "body",
    [
        {"top_n_sigma": -1},
        {"typical_p": 0},
        {"dynatemp_range": 0, "dynatemp_exponent": 2},
        {"xtc_probability": 0, "xtc_threshold": 0.3},
        {"mirostat": 0, "mirostat_tau": 3, "mirostat_eta": 0.2},
        {"dry_multiplier": 0, "dry_base": 2, "dry_allowed_length": 3, "dry_sequence_breakers": ["x"]},
        {"dry_multiplier": 1, "dry_penalty_last_n": 0},
    ],
    ids=str,
)
def test_a_sampler_that_is_off_is_off_whatever_its_other_fields_say(body: dict[str, Any]) -> None:
    assert read(**body) == NOTHING


def test_what_is_left_out_is_as_in_llama_cpp() -> None:
    found = read(mirostat=1, dry_multiplier=0.8, xtc_probability="0.5", dynatemp_range=0.3)
    assert found.mirostat == Mirostat(1, 5.0, 0.1)
    assert found.dry == DryChoice(0.8, 1.75, 2, ALL_TOKENS, ("\n", ":", '"', "*"))
    assert found.xtc == Xtc(0.5, 0.1)
    assert found.dynamic_temperature == DynamicTemperature(0.3, 1.0)


def test_every_value_is_taken() -> None:
    found = read(
        typical_p=0.9,
        top_n_sigma=1.5,
        mirostat=2,
        mirostat_tau=3,
        mirostat_eta=0.2,
        repeat_last_n=-1,
        dry_multiplier=1,
        dry_base=2,
        dry_allowed_length=4,
        dry_penalty_last_n=100,
        dry_sequence_breakers=[],
        xtc_probability=0.5,
        xtc_threshold=0.2,
        dynatemp_range=1,
        dynatemp_exponent=2,
    )
    assert (found.typical_p, found.top_n_sigma, found.repeat_last_n) == (0.9, 1.5, ALL_TOKENS)
    assert (found.mirostat, found.xtc) == (Mirostat(2, 3.0, 0.2), Xtc(0.5, 0.2))
    assert found.dry == DryChoice(1.0, 2.0, 4, 100, ())
    assert found.dynamic_temperature == DynamicTemperature(1.0, 2.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("typical_p", 1.5),
        ("xtc_threshold", -0.1),
        ("mirostat", 3),
        ("mirostat_eta", -1),
        ("dry_base", 0.9),
        ("dry_allowed_length", 0),
        ("repeat_last_n", -2),
        ("dry_sequence_breakers", ["x" * 41]),
        ("dry_sequence_breakers", [""]),
        ("dry_sequence_breakers", ["x"] * 17),
        ("dynatemp_range", -1),
    ],
)
def test_values_out_of_range_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(BadRequestError) as caught:
        read(**{name: value})
    assert caught.value.param == name


def test_sampling_takes_numbers_however_they_are_written() -> None:
    body = {"temperature": "0.5", "top_k": 5.0, "top_p": "1", "min_p": 0, "seed": "7"}
    fields = RequestFields(body)
    assert read_sampling(fields, 2) == SamplingChoice(0.5, 5, 1.0, 0.0, 7, 2)
    assert fields.ignored == ()


def test_top_k_of_minus_one_is_off() -> None:
    assert read_sampling(RequestFields({"top_k": -1}), None).top_k == 0


@pytest.mark.parametrize("seed", [-1, 1 << 63, 1 << 64, (1 << 64) + 5])
def test_seeds_beyond_64_bits_are_taken(seed: int) -> None:
    assert read_sampling(RequestFields({"seed": seed}), None).seed == seed


def test_llama_cpps_name_of_the_repetition_penalty_is_known() -> None:
    assert read_sampling(RequestFields({"repeat_penalty": 1.2}), None).repetition_penalty == 1.2
    both = RequestFields({"repeat_penalty": 1.2, "repetition_penalty": 1.1})
    assert read_sampling(both, None).repetition_penalty == 1.1
    assert both.ignored == ()


def test_what_is_absent_is_left_to_the_model() -> None:
    assert read_sampling(RequestFields({}), None) == SamplingChoice()


def test_an_api_may_lack_fields_and_read_some_in_another_way() -> None:
    fields = RequestFields({"temperature": 5, "top_k": 3, "min_p": 0.5})
    choice = read_sampling(fields, changed={"temperature": Number(0.0, 9.0)}, without=("min_p",))
    assert (choice.temperature, choice.top_k, choice.min_p) == (5.0, 3, None)
    assert fields.ignored == ("min_p",)


def test_every_option_is_read_by_its_name_or_as_an_alias() -> None:
    aliases = {alias for one in READERS.values() if isinstance(one, Number) for alias in one.aliases}
    assert set(SamplingOptions.__annotations__) == READERS.keys() | aliases


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


def answer_ids(daemon: RunningDaemon, question: str = "Hello", /, **fields: Any) -> list[int]:
    reply = chat(daemon, question, return_token_ids=True, **fields)
    found: list[int] = reply.json["choices"][0]["token_ids"]
    return found


@pytest.mark.parametrize(
    "fields",
    [
        {"typical_p": 1e-6},
        {"top_n_sigma": 1e-6},
        {"mirostat": 2, "mirostat_tau": 0, "mirostat_eta": 1},
        {"mirostat": 1, "mirostat_tau": 0, "mirostat_eta": 0},
        {"dynatemp_range": 3, "dynatemp_exponent": 100, "temperature": 0.01},
        {"samplers": ["top_k", "temperature"], "top_k": 1, "top_p": 0.9},
        {"samplers": "kt", "top_k": 1},
    ],
    ids=str,
)
def test_each_sampler_can_leave_one_token(daemon: RunningDaemon, fields: dict[str, Any]) -> None:
    sampled = {"temperature": 1.0, "max_tokens": 12, "ignore_eos": True} | fields
    first, second = (answer_ids(daemon, seed=seed, **sampled) for seed in (1, 2))
    assert first == second
    free = sampled | {name: None for name in fields if name != "temperature"} | {"temperature": 1.0}
    assert answer_ids(daemon, seed=1, **free) != answer_ids(daemon, seed=2, **free)


def test_the_order_of_samplers_changes_what_is_drawn(daemon: RunningDaemon) -> None:
    sampled = {"temperature": 2.0, "top_p": 0.3, "max_tokens": 20, "ignore_eos": True, "seed": 3}
    last = answer_ids(daemon, samplers=["top_p", "temperature"], **sampled)
    assert answer_ids(daemon, samplers=["temperature", "top_p"], **sampled) == answer_ids(daemon, **sampled)
    assert answer_ids(daemon, **sampled) != last
    assert answer_ids(daemon, samplers="pt", **sampled) == last


def test_xtc_excludes_the_best_token(daemon: RunningDaemon) -> None:
    pair = {"allowed_token_ids": [65, 66], "temperature": 2.0, "max_tokens": 30}
    excluded = pair | {"xtc_probability": 1, "xtc_threshold": 1e-4}
    assert answer_ids(daemon, seed=1, **excluded) == answer_ids(daemon, seed=2, **excluded)
    assert answer_ids(daemon, seed=1, **pair) != answer_ids(daemon, seed=2, **pair)
    best = answer_ids(daemon, **{**pair, "temperature": 0})
    assert answer_ids(daemon, seed=1, **excluded)[0] != best[0]


def test_dry_breaks_a_loop_unless_a_breaker_stands_in_it(daemon: RunningDaemon) -> None:
    loop = {"logit_bias": {"65": 30}, "temperature": 0, "max_tokens": 30, "ignore_eos": True}
    dry = loop | {"dry_multiplier": 2, "dry_allowed_length": 3}
    assert set(answer_ids(daemon, **loop)) == {65}
    assert set(answer_ids(daemon, **dry)) > {65}
    assert set(answer_ids(daemon, dry_sequence_breakers=["A"], **dry)) == {65}
    assert set(answer_ids(daemon, dry_penalty_last_n=2, **dry)) == {65}


def test_penalties_may_look_at_the_last_tokens_alone(daemon: RunningDaemon) -> None:
    fields = {"temperature": 0, "max_tokens": 40, "allowed_token_ids": list(range(97, 105))}
    penalised = fields | {"frequency_penalty": 2}
    answers = {
        last_n: tuple(answer_ids(daemon, "abcdefgh" * 5, repeat_last_n=last_n, **penalised))
        for last_n in (None, 0, 1, 8, -1)
    }
    assert answers[0] == tuple(answer_ids(daemon, "abcdefgh" * 5, **fields))
    assert len(set(answers.values())) == 5


def test_words_are_forbidden_and_tokens_allowed(daemon: RunningDaemon) -> None:
    forced = {"temperature": 0, "max_tokens": 6, "logit_bias": {"65": 50, "66": 49}}
    assert answer_ids(daemon, bad_words=["AA"], **forced) == [65, 66, 65, 66, 65, 66]
    assert answer_ids(daemon, bad_words="A", **forced) == [66] * 6
    assert set(answer_ids(daemon, allowed_token_ids=[67, 68], temperature=2, max_tokens=40)) == {67, 68}


def test_stop_string_is_shown_on_request(daemon: RunningDaemon) -> None:
    fields = {"temperature": 0, "max_tokens": 24, "logit_bias": {"65": 50}, "stop": "AAA"}
    reply = chat(daemon, include_stop_str_in_output=True, **fields).json["choices"][0]
    assert (reply["message"]["content"], reply["finish_reason"]) == ("AAA", "stop")
    assert chat(daemon, **fields).json["choices"][0]["message"]["content"] == ""
