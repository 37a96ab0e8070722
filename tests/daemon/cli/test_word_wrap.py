"""Lines are wrapped at words, whatever pieces the text arrives in; code is not wrapped."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd.cli.word_wrap import WordWrap, cells, may_break

WORDS = st.text(alphabet="abcdé.,!e\u0301", min_size=1, max_size=9).filter(lambda word: cells(word) > 0)
EAST_ASIAN = st.text(alphabet="日本語한국（、。「」aé🎈👩\u200d", min_size=1, max_size=20)


def wrapped(text: str, width: int, piece_len: int = 1) -> str:
    """Return what is shown of a text that arrives in pieces of that length."""
    wrap = WordWrap(lambda: width)
    pieces = [text[start : start + piece_len] for start in range(0, len(text), piece_len)]
    return "".join(map(wrap.feed, pieces)) + wrap.flush()


def test_breaks_between_words() -> None:
    assert wrapped("the quick brown fox jumps", 10) == "the quick\nbrown fox\njumps"


def test_a_word_that_just_fits_stays_on_its_row() -> None:
    assert wrapped("12345 7890 next", 10) == "12345 7890\nnext"


def test_line_ends_of_the_text_stay_and_begin_a_row() -> None:
    assert wrapped("12345\n\n1234567890 1", 10) == "12345\n\n1234567890\n1"


def test_a_word_is_held_back_until_it_is_complete() -> None:
    wrap = WordWrap(lambda: 10)
    assert [wrap.feed(piece) for piece in ("wo", "rd ne", "xt", " ")] == ["", "word", "", " next"]
    assert wrap.feed("last") + wrap.flush() == "\nlast"


def test_a_word_wider_than_the_terminal_is_left_to_it_and_shown_as_it_comes() -> None:
    long = "https://example.org/a/b/c"
    assert wrapped(f"see {long} and more", 10) == f"see\n{long} and\nmore"
    wrap = WordWrap(lambda: 10)
    assert [wrap.feed(piece) for piece in ("0123456789", "a", "b")] == ["", "0123456789a", "b"]


@pytest.mark.parametrize("fence", ["```", "~~~~", "   ```"])
def test_code_in_fences_is_left_as_it_is(fence: str) -> None:
    code = f"{fence}python\nprint('a long line',  'with  spaces', `1`)\n``\n\n    x\n{fence}\n"
    assert wrapped(code, 10) == code
    assert wrapped(f"{code}after the code", 10) == f"{code}after the\ncode"


def test_another_fence_does_not_end_the_code() -> None:
    code = "````\n```\nfour or more words here\n"
    assert wrapped(code, 10) == code


def test_code_in_one_line_opens_no_fence() -> None:
    assert wrapped("```x``` is code\nand more words", 10) == "```x``` is\ncode\nand more\nwords"


@pytest.mark.parametrize("indent", ["    ", "\t", "  \t"])
def test_indented_code_is_left_as_it_is_and_a_list_in_a_list_is_not(indent: str) -> None:
    code = f"{indent}return  a + b + c + d"
    assert wrapped(code, 12) == code
    for marker in ("-", "*", "12."):
        assert "\n" in wrapped(f"{indent}{marker} one item of several words", 20)


def test_east_asian_text_is_broken_between_characters_but_not_before_a_full_stop() -> None:
    assert wrapped("日本語日本語", 6) == "日本語\n日本語"
    assert wrapped("日本語。日本", 6) == "日本\n語。日\n本"
    assert wrapped("日「本」語", 6) == "日\n「本」\n語"
    assert wrapped("odd 日本", 5) == "odd\n日本"


def test_korean_is_broken_between_words() -> None:
    assert wrapped("한국어 문장도", 10) == "한국어\n문장도"


def test_what_is_one_character_to_people_stays_together() -> None:
    family, thumb, accent = "👩\u200d👩\u200d👧", "👍🏽", "e\u0301"
    for text in (family, thumb, accent):
        assert not any(may_break(before, after) for before, after in pairwise(text))
    assert wrapped(f"ab {family} {accent}{accent}", 5) == f"ab {family}\n{accent}{accent}"


def test_takes_the_width_that_the_terminal_has_at_each_word() -> None:
    width = 20
    wrap = WordWrap(lambda: width)
    shown = wrap.feed("one two three four ")
    width = 10  # the row of 18 cells becomes two rows, of which the second has eight cells
    shown += wrap.feed("5 six ")
    width = 30
    shown += wrap.feed("seven eight nine ten eleven")
    assert shown + wrap.flush() == "one two three four 5\nsix seven eight nine ten\neleven"


@given(st.lists(st.lists(WORDS, min_size=1, max_size=12), min_size=1, max_size=4), st.integers(9, 30))
def test_no_row_is_too_wide_and_no_word_is_lost(lines: list[list[str]], width: int) -> None:
    text = "\n".join(" ".join(line) for line in lines)
    shown = wrapped(text, width)
    assert all(cells(row) <= width for row in shown.split("\n"))
    assert shown.split() == text.split()
    rows = iter(shown.split("\n"))
    for line in lines:
        row = next(rows)
        while row != " ".join(line):
            row = f"{row} {next(rows)}"


@given(EAST_ASIAN, st.integers(6, 20))
def test_east_asian_characters_are_neither_lost_nor_cut_apart(text: str, width: int) -> None:
    assert wrapped(text, width).replace("\n", "") == text


@given(st.text(alphabet="ab `~\n\t-日1。", max_size=60), st.integers(1, 12), st.integers(1, 60))
def test_the_pieces_do_not_matter_and_only_line_ends_are_added(text: str, width: int, piece_len: int) -> None:
    shown = wrapped(text, width)
    assert wrapped(text, width, piece_len) == shown
    assert "".join(shown.split()) == "".join(text.split())
    assert shown.count("\n") >= text.count("\n")
