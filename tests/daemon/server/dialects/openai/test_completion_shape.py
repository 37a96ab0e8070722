from __future__ import annotations

from llmd.chat.answers.answer_text import Piece
from llmd.chat.model_text import ModelText
from llmd.requests.ending import EndChoice
from llmd.requests.sampling import SamplingChoice
from llmd.server.dialects.openai.completion_shape import CompletionShape
from llmd.server.dialects.openai.reply import ReplyHead
from llmd.server.generation.generation import GenerationRequest

HEAD = ReplyHead("cmpl-1", "m", 5, "llmd-0")


def shape_of(text: ModelText, *, token_ids: bool = False) -> CompletionShape:
    """Return the shape of two prompts with two answers each."""
    request = GenerationRequest(((1,), (2,)), SamplingChoice(), EndChoice(), 2)
    return CompletionShape(HEAD, request, text.tokenizer, ["one ", "two "], return_token_ids=token_ids)


def test_each_choice_begins_with_the_echo_of_its_prompt(text: ModelText) -> None:
    shape = shape_of(text)
    texts = {
        index: [
            chunk["choices"][0]["text"]
            for piece in (Piece("a"), Piece("b"))
            for chunk in shape.chunks(index, piece)
        ]
        for index in range(4)
    }
    assert texts == {0: ["one a", "b"], 1: ["one a", "b"], 2: ["two a", "b"], 3: ["two a", "b"]}


def test_echo_is_sent_also_before_an_answer_without_text(text: ModelText) -> None:
    first, finish = shape_of(text).chunks(2, Piece("", finish="length"))
    assert (first["choices"][0]["text"], first["choices"][0]["finish_reason"]) == ("two ", None)
    assert (finish["choices"][0]["text"], finish["choices"][0]["finish_reason"]) == ("", "length")


def test_prompt_ids_stand_in_the_first_chunk_of_each_choice(text: ModelText) -> None:
    shape = shape_of(text, token_ids=True)
    first = [
        next(iter(shape.chunks(index, Piece("a"))))["choices"][0]["prompt_token_ids"] for index in range(4)
    ]
    assert first == [(1,), (1,), (2,), (2,)]
    assert "prompt_token_ids" not in next(iter(shape.chunks(0, Piece("b"))))["choices"][0]


def test_whole_answer_has_its_choices_in_order(text: ModelText) -> None:
    shape = shape_of(text, token_ids=True)
    for index in (3, 1, 0, 2):
        shape.add(index, Piece(str(index), (), (index,), "stop"))
    choices = shape.body()["choices"]
    assert [choice["text"] for choice in choices] == ["one 0", "one 1", "two 2", "two 3"]
    assert [choice["token_ids"] for choice in choices] == [(0,), (1,), (2,), (3,)]
