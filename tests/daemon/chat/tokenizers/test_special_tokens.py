from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmd.chat.tokenizers.special_tokens import Piece, SpecialToken, SpecialTokenSplitter, any_of

SHORT, LONG = SpecialToken("<a>", 1), SpecialToken("<a><b>", 2)
GREEDY = SpecialToken("<g>", 3, lstrip=True, rstrip=True)


def test_longest_of_several_tokens_wins() -> None:
    pieces = SpecialTokenSplitter([SHORT, LONG]).split("x<a><b><a>")
    assert pieces == [Piece("x"), Piece("<a><b>", LONG), Piece("<a>", SHORT)]


def test_token_swallows_whitespace_on_the_sides_that_it_names() -> None:
    pieces = SpecialTokenSplitter([SHORT, GREEDY]).split("x \t<g>\n <a> y")
    assert pieces == [Piece("x"), Piece(" \t<g>\n ", GREEDY), Piece("<a>", SHORT), Piece(" y")]


def test_without_tokens_the_text_is_one_piece() -> None:
    assert SpecialTokenSplitter([]).split("<a>") == [Piece("<a>")]
    assert SpecialTokenSplitter([SHORT]).split("") == []


@given(st.text(alphabet="<ag> \n"))
def test_pieces_join_to_the_text(text: str) -> None:
    blank = SpecialToken(" \n", 4)
    pieces = SpecialTokenSplitter([SHORT, LONG, GREEDY, blank]).split(text)
    assert "".join(piece.text for piece in pieces) == text


@given(st.lists(st.text(alphabet="ab|.", max_size=4)), st.text(alphabet="ab|.", max_size=20))
def test_pattern_finds_the_longest_text_at_the_first_place(texts: list[str], text: str) -> None:
    wanted = [(text.find(found), -len(found), found) for found in texts if found and found in text]
    match = any_of(texts).search(text)
    assert (match and match.group()) == (min(wanted)[2] if wanted else None)
