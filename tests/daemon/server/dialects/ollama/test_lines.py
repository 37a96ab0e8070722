from __future__ import annotations

from llmd.chat.answers.answer_text import AnswerToken, Piece
from llmd.chat.model_text import ModelText
from llmd.server.dialects.ollama.lines import AnswerLines, joined, said_in_chat, said_in_generate


def lines_of(text: ModelText, *, logprobs: bool = False) -> AnswerLines:
    return AnswerLines("m", said_in_chat, text.tokenizer, logprobs=logprobs, clock=lambda: 0)


def test_line_has_the_message_and_the_last_one_the_figures(text: ModelText) -> None:
    lines = lines_of(text)
    (line,) = lines.lines(Piece("a", token_ids=(97,)))
    head = {"model": "m", "created_at": "1970-01-01T00:00:00.000000000Z"}
    assert line == {**head, "message": {"role": "assistant", "content": "a"}, "done": False}
    assert list(lines.lines(Piece("", token_ids=(258,), finish="stop"))) == []
    assert lines.last("stop", {"eval_count": 2}) == {
        **head,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "stop",
        "eval_count": 2,
    }
    assert lines.tokens == [97, 258]


def test_tokens_of_a_stop_string_are_not_of_the_answer(text: ModelText) -> None:
    lines = lines_of(text)
    piece = Piece("a", (AnswerToken(97, 0),), token_ids=(97, 98, 99), finish="stop", stop="bc")
    list(lines.lines(piece))
    assert lines.tokens == [97]


def test_tokens_without_text_of_their_own_have_logprobs_all_the_same(text: ModelText) -> None:
    piece = Piece("", (AnswerToken(258, 0, -0.5),), token_ids=(258,), finish="length")
    (line,) = lines_of(text, logprobs=True).lines(piece)
    assert line["logprobs"][0]["logprob"] == -0.5
    assert list(lines_of(text).lines(piece)) == []


def test_whole_answer_joins_what_was_said() -> None:
    call = {"id": "call_1", "function": {"index": 0, "name": "f", "arguments": {}}}
    said = [
        said_in_chat("", "hm", []) | {"logprobs": [1]},
        said_in_chat("a", "", []),
        said_in_chat("b", "", [call]) | {"logprobs": [2]},
        said_in_chat("", "", []) | {"done": True},
    ]
    assert joined(said) == {
        "message": {"role": "assistant", "content": "ab", "thinking": "hm", "tool_calls": [call]},
        "done": True,
        "logprobs": [1, 2],
    }
    said = [said_in_generate("a", "hm", []), said_in_generate("b", "", []), said_in_generate("", "", [])]
    assert joined(said) == {"response": "ab", "thinking": "hm"}
