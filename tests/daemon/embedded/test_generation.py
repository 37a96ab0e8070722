"""The three kinds of prompts, the options, and when answers end."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from llmd.api.errors import ContextLengthError, GrammarError, RequestError
from llmd.api.messages import Grammar
from llmd.embedded.engine import Engine
from llmd.embedded.generated import GenerationOptions

QUESTION = "hello"
CHAT = "<s><|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"


def test_a_question_is_a_conversation_of_one_message(engine: Engine) -> None:
    asked = engine.generate(QUESTION, max_tokens=6, temperature=0)
    conversation = engine.generate([{"role": "user", "content": QUESTION}], max_tokens=6, temperature=0)
    continued = engine.generate(engine.tokenize(CHAT), max_tokens=6, temperature=0)
    assert asked.token_ids == conversation.token_ids == continued.token_ids
    assert asked.prompt_tokens == continued.prompt_tokens == len(engine.tokenize(CHAT))


def test_system_stands_before_a_question_and_nothing_else(engine: Engine) -> None:
    plain = engine.generate(QUESTION, max_tokens=1)
    told = engine.generate(QUESTION, max_tokens=1, system="be brief")
    assert told.prompt_tokens > plain.prompt_tokens
    with pytest.raises(RequestError, match="only if the prompt is a question"):
        engine.generate([1, 2], system="be brief")


def test_numpys_integers_are_token_ids_too(engine: Engine) -> None:
    ids = engine.tokenize(CHAT)
    expected = engine.generate(ids, max_tokens=3, temperature=0).token_ids
    given: Any
    counted: dict[str, Any] = {"seed": np.int64(3), "max_tokens": np.int32(3)}
    for given in (np.array(ids), list(np.array(ids, np.int32))):
        assert engine.generate(given, **counted).output_tokens == 3
        assert engine.generate(given, max_tokens=3, temperature=0).token_ids == expected


def test_none_leaves_every_option_as_it_was(engine: Engine) -> None:
    unset: dict[str, Any] = dict.fromkeys(GenerationOptions.__annotations__)
    unset["seed"] = 1
    answer = engine.generate(QUESTION, **unset)
    assert answer.token_ids == engine.generate(QUESTION, seed=1).token_ids


def test_a_seed_repeats_an_answer(engine: Engine) -> None:
    first = engine.generate(QUESTION, max_tokens=8, seed=1).token_ids
    assert engine.generate(QUESTION, max_tokens=8, seed=1).token_ids == first
    assert engine.generate(QUESTION, max_tokens=8, seed=2).token_ids != first


def test_narrowed_to_one_token_sampling_is_greedy(engine: Engine) -> None:
    greedy = engine.generate(QUESTION, max_tokens=6, temperature=0).token_ids
    assert engine.generate(QUESTION, max_tokens=6, seed=3).token_ids != greedy
    assert engine.generate(QUESTION, max_tokens=6, seed=3, top_k=1).token_ids == greedy
    assert engine.generate(QUESTION, max_tokens=6, seed=3, top_p=1e-6).token_ids == greedy
    assert engine.generate(QUESTION, max_tokens=6, seed=3, min_p=1.0).token_ids == greedy


def test_beams_find_a_likelier_answer_than_drawing_the_best_token_does(engine: Engine) -> None:
    def total(**options: Any) -> tuple[float, tuple[int, ...]]:
        tokens = [*engine.stream(engine.tokenize("Hello"), max_tokens=24, temperature=0, **options)]
        return sum(token.logprob for token in tokens), tuple(token.id for token in tokens)

    found, ids = total(beam_width=4, length_penalty=0, early_stopping="never")
    assert found > total()[0]
    options: Any = {"beam_width": 4, "length_penalty": 0.0, "early_stopping": "never", "temperature": 1.5}
    assert engine.generate(engine.tokenize("Hello"), max_tokens=24, **options).token_ids == ids
    assert total(beam_width=1, length_penalty=0)[1] == total()[1]


def test_a_stop_string_ends_the_answer_and_is_left_out(engine: Engine) -> None:
    whole = engine.generate(QUESTION, max_tokens=12, seed=1)
    stop = whole.text[3:5]
    cut = engine.generate(QUESTION, max_tokens=12, seed=1, stop=[stop])
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.finish == "stop"
    assert engine.stats().running == 0


def test_one_stop_string_may_stand_alone(engine: Engine) -> None:
    stop = engine.generate(QUESTION, max_tokens=12, seed=1).text[3:5]
    alone, listed = (engine.generate(QUESTION, max_tokens=12, seed=1, stop=one) for one in (stop, [stop]))
    assert alone.text == listed.text


def test_an_option_that_does_not_exist_is_refused_by_name(engine: Engine) -> None:
    misspelt: dict[str, Any] = {"max_token": 3}
    with pytest.raises(RequestError, match="there is no option max_token") as caught:
        engine.generate(QUESTION, **misspelt)
    assert "max_tokens" in caught.value.hint


def test_the_models_own_stop_token_ends_the_answer(engine: Engine) -> None:
    ids = engine.tokenize(CHAT)
    seeds = (engine.generate(ids, seed=seed) for seed in range(50))
    ended = next(answer for answer in seeds if answer.finish == "stop")
    assert ended.token_ids[-1] == engine.tokenize("<|im_end|>")[-1]
    assert "<|im_end|>" not in ended.text


def test_without_a_limit_the_window_is_filled(engine: Engine) -> None:
    ids = engine.tokenize("x" * 500)
    answer = engine.generate(ids, temperature=0)
    assert answer.finish == "stop" or answer.output_tokens == engine.loaded.context_len - len(ids)


def test_a_prompt_that_fills_the_window_is_refused(engine: Engine) -> None:
    with pytest.raises(ContextLengthError, match="512"):
        engine.generate(engine.tokenize("x" * 512), max_tokens=1)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 3.0},
        {"top_p": 0.0},
        {"min_p": 2.0},
        {"top_k": -2},
        {"top_k": 2.5},
        {"max_tokens": 2.5},
        {"seed": 1.5},
        {"max_tokens": 0},
        {"stop": [""]},
        {"stop": ""},
        {"beam_width": 0},
        {"beam_width": 2.5},
        {"beam_width": 99},
        {"beam_width": 2, "length_penalty": 11},
        {"beam_width": 2, "early_stopping": "soon"},
        {"beam_width": 2, "early_stopping": []},
        {"length_penalty": 1.0},
    ],
)
def test_options_out_of_range_are_refused(engine: Engine, options: dict[str, object]) -> None:
    with pytest.raises(RequestError):
        engine.generate(QUESTION, **options)  # type: ignore[arg-type]


def test_a_grammar_binds_the_answer_and_a_bad_one_is_refused(engine: Engine) -> None:
    bound = Grammar("regex", "[ab]{4}c")
    for _ in range(2):
        answer = engine.generate("hello", grammar=bound, temperature=0)
        assert re.fullmatch("[ab]{4}c", answer.text)
        assert answer.finish == "stop"
    with pytest.raises(GrammarError, match="uniqueItems at #"):
        engine.generate("hello", grammar=Grammar("json_schema", '{"uniqueItems": true}'))
    free = engine.generate("hello", max_tokens=5, temperature=0)
    assert (free.output_tokens, engine.stats().running) == (5, 0)
