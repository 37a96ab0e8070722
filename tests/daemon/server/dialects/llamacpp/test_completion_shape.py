from __future__ import annotations

from typing import Any

import pytest

from llmd.chat.answers.answer_text import Piece
from llmd.chat.model_text import ModelText
from llmd.requests.fields import RequestFields
from llmd.server.dialects.llamacpp.completion_shape import CompletionShape
from llmd.server.dialects.llamacpp.fields import read_settings
from llmd.server.generation.generation import Generation, GenerationRequest


def shape_of(text: ModelText, *prompts: bytes, **fields: Any) -> CompletionShape:
    settings = read_settings(RequestFields({"return_tokens": True, "n_predict": 5, "seed": 3, **fields}))
    request = GenerationRequest(
        tuple(tuple(prompt) for prompt in prompts),
        settings.choice(text.tokenizer, text.defaults),
        settings.end,
    )
    return CompletionShape("m", settings, Generation(request, text, 64, 259), text)


def test_answers_of_several_prompts_are_kept_apart(text: ModelText) -> None:
    shape = shape_of(text, b"ab", b"c")
    shape.add(1, Piece("x\n", token_ids=(120, 10)))
    shape.add(0, Piece("y", token_ids=(121,), finish="length"))
    shape.add(1, Piece("z", token_ids=(122, 258), finish="stop"))
    first, second = shape.whole(0), shape.whole(1)
    assert (first["content"], first["tokens"], first["stop_type"]) == ("y", [121], "limit")
    assert (second["content"], second["tokens"], second["stop_type"]) == ("x\nz", [120, 10, 122, 258], "eos")
    assert (first["prompt"], second["prompt"]) == ("ab", "c")
    assert (first["has_new_line"], second["has_new_line"]) == (False, True)
    assert (second["tokens_evaluated"], second["tokens_predicted"], second["tokens_cached"]) == (1, 4, 5)


def test_settings_that_were_used_are_told(text: ModelText) -> None:
    shape = shape_of(text, b"a")
    shape.add(0, Piece("", finish="length"))
    used = shape.last(0)["generation_settings"]
    assert (used["seed"], used["n_predict"], used["top_k"]) == (3, 5, 40)


@pytest.mark.parametrize(
    ("num_tokens", "finish", "truncated"), [(61, "length", False), (62, "length", True), (62, "stop", False)]
)
def test_answer_is_truncated_where_it_ends_because_the_window_is_full(
    text: ModelText, num_tokens: int, finish: str, *, truncated: bool
) -> None:
    shape = shape_of(text, b"ab")  # its window is 64 tokens
    shape.add(0, Piece("x", token_ids=(120,) * num_tokens, finish=finish))
    assert shape.whole(0)["truncated"] is shape.last(0)["truncated"] is truncated


def test_response_fields_choose_what_is_answered(text: ModelText) -> None:
    wanted = ["content", "generation_settings/n_predict", "timings/none", "none", "content/none", "stop"]
    shape = shape_of(text, b"a", response_fields=wanted)
    shape.add(0, Piece("x", token_ids=(120,), finish="stop"))
    assert shape.whole(0) == {"content": "x", "generation_settings/n_predict": 5, "stop": True}
    assert shape.last(0) == {"content": "", "generation_settings/n_predict": 5, "stop": True}
    assert shape.chunk(0, Piece("x", token_ids=(120,)))["tokens"] == [120]


def test_no_response_fields_are_all_fields(text: ModelText) -> None:
    shape = shape_of(text, b"a", response_fields=[])
    shape.add(0, Piece("x", token_ids=(120,), finish="stop"))
    assert {"content", "tokens", "timings", "generation_settings", "prompt"} <= set(shape.whole(0))


def test_nothing_is_divided_by_no_time(text: ModelText) -> None:
    shape = shape_of(text, b"a")
    shape.add(0, Piece("", finish="length"))
    timings = shape.last(0)["timings"]
    assert (timings["predicted_per_second"], timings["predicted_per_token_ms"]) == (0.0, 0.0)
