from __future__ import annotations

import numpy as np
import pytest

from llmd.api.messages import Grammar
from llmd.grammar.compiler import GrammarCompiler
from llmd.grammar.masks import MaskFiller, MaskRow
from tests.daemon.grammar.conftest import CLOSE, END, OPEN, VOCAB_SIZE, VOCABULARY, Allowed

A, B = b"ab"


def test_a_complete_answer_may_end_and_no_other(compiler: GrammarCompiler, allowed: Allowed) -> None:
    matcher = compiler.compile(Grammar("regex", "ab?"))
    assert allowed(matcher) == [A]
    assert allowed(matcher, new=(A,)) == [B, END]
    assert allowed(matcher, new=(B,)) == [END]


def test_every_stop_id_of_the_request_ends_it(compiler: GrammarCompiler, allowed: Allowed) -> None:
    matcher = compiler.compile(Grammar("regex", "a"))
    matcher.accept([A])
    assert allowed(matcher, stop_ids=(OPEN, CLOSE, VOCAB_SIZE + 5)) == [OPEN, CLOSE]


def test_an_answer_that_should_be_longer_goes_on_while_it_can(
    compiler: GrammarCompiler, allowed: Allowed
) -> None:
    matcher = compiler.compile(Grammar("regex", "ab?"))
    matcher.accept([A])
    assert allowed(matcher, longer=True) == [B]
    assert allowed(matcher, new=(B,), longer=True) == [END]


def test_a_stop_id_is_content_only_where_nothing_else_goes_on(
    compiler: GrammarCompiler, allowed: Allowed
) -> None:
    matcher = compiler.compile(Grammar("regex", "[ab]b"))
    assert allowed(matcher, stop_ids=(A,)) == [B]
    assert allowed(matcher, new=(B,), stop_ids=(B,)) == [B]


def test_longer_tokens_that_fit_are_allowed_and_parts_of_characters(
    compiler: GrammarCompiler, allowed: Allowed
) -> None:
    assert allowed(compiler.compile(Grammar("choice", '["yes"]'))) == [
        ord("y"),
        VOCABULARY.tokens.index(b"yes"),
    ]
    smile = compiler.compile(Grammar("choice", '["😀"]'))
    assert allowed(smile) == [0xF0, VOCABULARY.tokens.index(b"\xf0\x9f")]


def test_rows_are_masked_together_each_by_its_own_grammar(
    compiler: GrammarCompiler, filler: MaskFiller, allowed: Allowed
) -> None:
    patterns = [f"[{chr(97 + n)}-z]+" for n in range(20)]
    rows = [MaskRow(compiler.compile(Grammar("regex", p)), (END,)) for p in patterns]
    masks, failed = filler.fill(rows)
    assert masks.shape == (20, -(-VOCAB_SIZE // 32))
    assert masks.dtype == np.uint32
    assert failed == {}
    assert masks.flags.c_contiguous
    bits = np.unpackbits(masks.view(np.uint8), axis=1, bitorder="little")
    assert [np.flatnonzero(row)[0] for row in bits] == [97 + n for n in range(20)]


@pytest.mark.parametrize("vocab_size", [263, 287, 288, 289])
def test_masks_have_a_word_for_every_32_ids(vocab_size: int) -> None:
    compiler, filler = GrammarCompiler(VOCABULARY, vocab_size), MaskFiller(vocab_size, 1)
    masks, _ = filler.fill([MaskRow(compiler.compile(Grammar("regex", "a")), (END,), (A,))])
    assert masks.shape == (1, -(-vocab_size // 32))
    assert np.flatnonzero(np.unpackbits(masks.view(np.uint8), bitorder="little")).tolist() == [END]


def test_a_row_that_cannot_go_on_says_why_and_the_others_have_their_masks(
    compiler: GrammarCompiler, filler: MaskFiller
) -> None:
    good = MaskRow(compiler.compile(Grammar("regex", "a")), (END,))
    lost = MaskRow(compiler.compile(Grammar("regex", "a")), (END,), (B,))
    dead = MaskRow(compiler.compile(Grammar("lark", 'start: "a" /[^\\s\\S]/')), (END,), (A,))
    masks, failed = filler.fill([lost, good, dead])
    assert sorted(failed) == [0, 2]
    assert all(failed.values())
    assert np.flatnonzero(np.unpackbits(masks[1].view(np.uint8), bitorder="little")).tolist() == [A]
