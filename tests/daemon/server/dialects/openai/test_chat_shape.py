from __future__ import annotations

import pytest

from llmd.api.parts import CallArguments, CallStart, Reasoning, Text
from llmd.chat.answers.answer_text import AnswerToken, Piece
from llmd.chat.model_text import ModelText
from llmd.requests.ending import EndChoice
from llmd.requests.sampling import SamplingChoice
from llmd.server.dialects.openai.chat_shape import ChatShape
from llmd.server.dialects.openai.reply import ReplyHead
from llmd.server.generation.generation import GenerationRequest

HEAD = ReplyHead("chatcmpl-1", "m", 5, "llmd-0")


def shape_of(
    text: ModelText, *, n: int = 1, logprobs: int | None = None, token_ids: bool = False
) -> ChatShape:
    request = GenerationRequest(((1, 2),), SamplingChoice(logprobs=logprobs), EndChoice(), n)
    return ChatShape(HEAD, request, text.tokenizer, return_token_ids=token_ids)


def test_last_piece_with_text_becomes_two_chunks(text: ModelText) -> None:
    opening, content, finish = shape_of(text).chunks(0, Piece("a", finish="stop"))
    assert opening["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert (content["choices"][0]["delta"], content["choices"][0]["finish_reason"]) == (
        {"content": "a"},
        None,
    )
    assert (finish["choices"][0]["delta"], finish["choices"][0]["finish_reason"]) == ({}, "stop")


def test_whitespace_alone_is_sent(text: ModelText) -> None:
    _, content = shape_of(text).chunks(0, Piece(" "))
    assert content["choices"][0]["delta"] == {"content": " "}


def test_each_choice_opens_once(text: ModelText) -> None:
    shape = shape_of(text, n=2)
    roles = [
        (chunk["choices"][0]["index"], "role" in chunk["choices"][0]["delta"])
        for index in (0, 1, 0, 1)
        for chunk in shape.chunks(index, Piece("a"))
    ]
    assert roles == [(0, True), (0, False), (1, True), (1, False), (0, False), (1, False)]


@pytest.mark.parametrize("piece", [Piece("a", (), (7,)), Piece("", (), (7,), "stop")])
def test_ids_of_a_piece_are_sent_once(text: ModelText, piece: Piece) -> None:
    chunks = list(shape_of(text, token_ids=True).chunks(0, piece))
    assert [i for chunk in chunks for i in chunk["choices"][0]["token_ids"]] == [7]
    assert chunks[0]["prompt_token_ids"] == (1, 2)


def test_tokens_without_text_still_have_their_logprobs(text: ModelText) -> None:
    piece = Piece("", (AnswerToken(97, 0, -0.5),), (97,), "length")
    _, content, finish = shape_of(text, logprobs=0).chunks(0, piece)
    assert content["choices"][0]["logprobs"]["content"][0]["logprob"] == -0.5
    assert finish["choices"][0]["logprobs"] is None


def test_piece_of_several_parts_is_a_chunk_for_each_with_its_tokens_once(text: ModelText) -> None:
    parts = (Reasoning("hm"), Text("a"), CallStart(0, "now"), CallArguments(0, "{}"))
    tokens = (AnswerToken(97, 0, -0.5),)
    shape = shape_of(text, logprobs=0)
    _, *chunks, finish = shape.chunks(0, Piece("a", tokens, (97,), "stop", read=parts))
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert [list(delta) for delta in deltas] == [
        ["reasoning", "reasoning_content"],
        ["content"],
        ["tool_calls"],
        ["tool_calls"],
    ]
    logprobs = [chunk["choices"][0]["logprobs"] for chunk in chunks]
    assert [found is not None for found in logprobs] == [True, False, False, False]
    assert finish["choices"][0]["finish_reason"] == "tool_calls"


def test_call_of_an_earlier_piece_is_the_reason_of_the_end(text: ModelText) -> None:
    shape = shape_of(text, n=2)
    list(shape.chunks(0, Piece("", read=(CallStart(0, "now"),))))
    ends = [list(shape.chunks(index, Piece("", finish="stop", read=())))[-1] for index in (0, 1)]
    assert [end["choices"][0]["finish_reason"] for end in ends] == ["tool_calls", "stop"]


def test_whole_answer_has_reasoning_and_calls(text: ModelText) -> None:
    shape = shape_of(text)
    shape.add(0, Piece("", read=(Reasoning("h"), Reasoning("m"), CallStart(0, "now"))))
    shape.add(0, Piece("", finish="stop", read=(CallArguments(0, "{}"),)))
    (choice,) = shape.body()["choices"]
    assert (choice["finish_reason"], choice["message"]["reasoning"]) == ("tool_calls", "hm")
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "now", "arguments": "{}"}


def test_whole_answer_joins_its_pieces(text: ModelText) -> None:
    shape = shape_of(text, n=2)
    for index, piece in [(0, Piece("a")), (1, Piece("x", finish="length")), (0, Piece("b", finish="stop"))]:
        shape.add(index, piece)
    choices = shape.body()["choices"]
    assert [choice["message"]["content"] for choice in choices] == ["ab", "x"]
    assert [choice["finish_reason"] for choice in choices] == ["stop", "length"]
