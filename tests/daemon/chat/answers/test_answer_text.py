from __future__ import annotations

from collections.abc import Sequence

import pytest

from llmd.api.parsing import ReasoningMarks
from llmd.api.parts import AnswerPart, CallArguments, CallStart, Reasoning, Text
from llmd.api.results import Logprobs, TokenOutput
from llmd.builtin.parsers.hermes import load
from llmd.chat.answers.answer_reader import AnswerReader
from llmd.chat.answers.answer_text import AnswerText, Piece
from llmd.chat.answers.reasoning import ReasoningSplitter
from llmd.chat.model_text import ModelText
from tests.serving.model import BOS, TURN_END, TURN_START

Token = tuple[int, str | None]


def pieces_of(
    text: ModelText,
    tokens: Sequence[int | Token],
    stops: Sequence[str] = (),
    *,
    skip_special: bool = True,
    shows_stop: bool = False,
) -> list[Piece]:
    """Return the pieces of an answer; each token is an id, or an id and a finish reason."""
    answer = AnswerText(
        text.tokenizer, stops, skip_special=skip_special, at_text_start=True, shows_stop=shows_stop
    )
    pieces = []
    for token in tokens:
        token_id, finish = token if isinstance(token, tuple) else (token, None)
        piece = answer.feed(TokenOutput(0, token_id, finish))
        if piece is not None:
            pieces.append(piece)
            if piece.finish is not None:
                break
    return pieces


def text_of(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def test_half_a_character_waits_for_the_rest_with_its_tokens(text: ModelText) -> None:
    euro = "€".encode()
    pieces = pieces_of(text, [*b"a", *euro, *b"b", (TURN_END, "stop")])
    assert [piece.text for piece in pieces] == ["a", "€", "b", ""]
    assert [token.token_id for token in pieces[1].tokens] == list(euro)
    assert pieces[1].token_ids == tuple(euro)
    assert [token.start for token in pieces[1].tokens] == [1, 1, 1]
    assert pieces[2].tokens[0].start == 2


def test_parts_of_a_piece_are_its_text(text: ModelText) -> None:
    pieces = pieces_of(text, [*b"a", (TURN_END, "stop")])
    assert [piece.parts for piece in pieces] == [(Text("a"),), ()]


def test_what_never_became_a_character_is_replaced_at_the_end_alone(text: ModelText) -> None:
    euro = "€".encode()
    pieces = pieces_of(text, [*b"a", euro[0], (euro[1], "length")])
    assert [piece.text for piece in pieces] == ["a", "\ufffd"]
    assert [token.token_id for token in pieces[1].tokens] == [euro[0], euro[1]]


def test_stop_token_has_no_text_and_is_counted(text: ModelText) -> None:
    (a, end) = pieces_of(text, [*b"a", (TURN_END, "stop")], skip_special=False)
    assert (end.text, end.tokens, end.token_ids, end.finish) == ("", (), (TURN_END,), "stop")
    assert a.text == "a"


@pytest.mark.parametrize("stop", ["END", "ND", "D"])
def test_stop_string_over_several_tokens_is_not_in_the_text(text: ModelText, stop: str) -> None:
    pieces = pieces_of(text, [*b"one END two"], [stop])
    assert text_of(pieces) == "one END"[: -len(stop)]
    assert (pieces[-1].finish, pieces[-1].stop) == ("stop", stop)


@pytest.mark.parametrize("stop", ["cd", "d", "abcd"])
def test_stop_string_is_in_the_text_where_that_is_asked_for(text: ModelText, stop: str) -> None:
    pieces = pieces_of(text, [*b"abcdef"], [stop], shows_stop=True)
    assert text_of(pieces) == "abcd"
    assert (pieces[-1].finish, pieces[-1].stop) == ("stop", stop)
    assert [token.token_id for piece in pieces for token in piece.tokens] == [*b"abcd"]


def test_stop_token_is_in_the_text_where_that_is_asked_for(text: ModelText) -> None:
    tokens: list[int | Token] = [*b"ab", (ord("c"), "stop")]
    assert text_of(pieces_of(text, tokens, shows_stop=True)) == "abc"
    assert text_of(pieces_of(text, tokens)) == "ab"
    ended: list[int | Token] = [*b"ab", (TURN_END, "stop")]
    assert text_of(pieces_of(text, ended, shows_stop=True)) == "ab"
    assert text_of(pieces_of(text, ended, shows_stop=True, skip_special=False)) == "ab<|im_end|>"


def test_tokens_of_a_stop_string_have_no_logprobs_but_are_counted(text: ModelText) -> None:
    pieces = pieces_of(text, [*b"ab!!c"], ["!!"])
    assert [token.token_id for piece in pieces for token in piece.tokens] == [*b"ab"]
    assert [i for piece in pieces for i in piece.token_ids] == [*b"ab!!"]


def test_text_held_for_a_stop_string_that_never_comes_is_released(text: ModelText) -> None:
    pieces = pieces_of(text, [*b"a!b", *b"!", (ord("c"), "length")], ["!!"])
    assert [piece.text for piece in pieces] == ["a", "!b", "!c"]
    held = pieces_of(text, [*b"a", (ord("!"), "length")], ["!!"])
    assert text_of(held) == "a!"
    assert held[-1].finish == "length"


def test_stop_string_that_the_last_token_completes_wins_over_the_length(text: ModelText) -> None:
    pieces = pieces_of(text, [*b"a!", (ord("!"), "length")], ["!!"])
    assert (text_of(pieces), pieces[-1].finish, pieces[-1].stop) == ("a", "stop", "!!")


def test_special_tokens_are_left_out_unless_asked_for(text: ModelText) -> None:
    tokens: list[int | Token] = [ord("a"), TURN_START, (ord("b"), "length")]
    assert text_of(pieces_of(text, tokens)) == "ab"
    assert text_of(pieces_of(text, tokens, skip_special=False)) == "a<|im_start|>b"


def test_logprobs_come_with_their_tokens(text: ModelText) -> None:
    answer = AnswerText(text.tokenizer, (), skip_special=True, at_text_start=True)
    piece = answer.feed(TokenOutput(0, ord("a"), None, Logprobs(-0.5, (98, 97), (-0.25, -0.5))))
    assert piece is not None
    (token,) = piece.tokens
    assert token.logprob == -0.5
    assert [(other.token_id, other.logprob) for other in token.top] == [(98, -0.25), (97, -0.5)]


THINK = ReasoningMarks("<think>", "</think>")


def reading(text: ModelText, answer: str, stops: Sequence[str] = ()) -> list[Piece]:
    """Return the pieces of an answer of byte tokens, with hermes reasoning and calls."""
    reader = AnswerReader(reasoning=ReasoningSplitter(THINK, is_open=False), calls=load().open([]))
    text_of_answer = AnswerText(text.tokenizer, stops, skip_special=True, at_text_start=True, reader=reader)
    tokens = [TokenOutput(0, byte) for byte in answer.encode()]
    pieces = []
    for token in (*tokens, TokenOutput(0, TURN_END, "stop")):
        piece = text_of_answer.feed(token)
        if piece is not None:
            pieces.append(piece)
            if piece.finish is not None:
                break
    return pieces


def parts_of(pieces: Sequence[Piece]) -> list[AnswerPart]:
    return [part for piece in pieces for part in piece.parts]


def test_reasoning_and_calls_are_parts_and_text_is_the_answer_alone(text: ModelText) -> None:
    pieces = reading(text, '<think>a b</think>c\n<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>')
    assert text_of(pieces) == "c"
    kinds = [type(part) for part in parts_of(pieces)]
    assert kinds == sorted(kinds, key=[Reasoning, Text, CallStart, CallArguments].index)
    assert "".join(part.text for part in parts_of(pieces) if isinstance(part, Reasoning)) == "a b"
    assert "".join(part.json for part in parts_of(pieces) if isinstance(part, CallArguments)) == '{"x": 1}'


def test_every_token_comes_once_and_no_earlier_than_its_part(text: ModelText) -> None:
    answer = "<think>a</think>b <<tool"
    pieces = reading(text, answer)
    assert bytes(token.token_id for piece in pieces for token in piece.tokens) == answer.encode()
    assert [(piece.text, bytes(token.token_id for token in piece.tokens)) for piece in pieces] == [
        ("", b"<think>a"),
        ("b", b"</think>b"),
        (" <", b" <"),
        ("<tool", b"<tool"),
    ]


def test_reasoning_tokens_are_those_between_the_marks_and_the_marks_end(text: ModelText) -> None:
    reader = AnswerReader(reasoning=ReasoningSplitter(THINK, is_open=False))
    answer = AnswerText(text.tokenizer, (), skip_special=True, at_text_start=True, reader=reader)
    for byte in b"<think>abc</think>de":
        answer.feed(TokenOutput(0, byte))
    assert answer.reasoning_tokens == len(">abc</think>")


def test_stop_string_ends_the_text_and_is_none_in_reasoning_or_calls(text: ModelText) -> None:
    answer = '<think>END</think>a<tool_call>{"name": "f", "arguments": {"x": "END"}}</tool_call>b END c'
    pieces = reading(text, answer, ["END"])
    assert (text_of(pieces), pieces[-1].finish, pieces[-1].stop) == ("ab ", "stop", "END")
    tokens = bytes(token.token_id for piece in pieces for token in piece.tokens)
    assert tokens == answer.partition("END c")[0].encode()


def test_stop_string_does_not_reach_over_a_call(text: ModelText) -> None:
    pieces = reading(text, 'aE<tool_call>{"name": "f"}</tool_call>ND', ["END"])
    assert [part.text for part in parts_of(pieces) if isinstance(part, Text)] == ["a", "E", "N", "D"]
    assert [type(part) for part in parts_of(pieces)].index(CallStart) == 2


def test_special_tokens_that_mark_calls_are_read_and_not_shown(text: ModelText) -> None:
    class Marked:
        held = 0

        def feed(self, text: str) -> list[AnswerPart]:
            return [CallStart(0, text)] if text.startswith("<|") else [Text(text)]

        def finish(self) -> list[AnswerPart]:
            return []

    reader = AnswerReader(calls=Marked(), marks=frozenset({"<|im_start|>", "no token"}))
    answer = AnswerText(text.tokenizer, (), skip_special=True, at_text_start=True, reader=reader)
    tokens = [TokenOutput(0, token) for token in (BOS, ord("a"), TURN_START)]
    pieces = [piece for piece in map(answer.feed, tokens) if piece is not None]
    assert parts_of(pieces) == [Text("a"), CallStart(0, "<|im_start|>")]
