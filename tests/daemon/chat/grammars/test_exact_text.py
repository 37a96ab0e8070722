from __future__ import annotations

from llmd.chat.grammars.exact_text import exact_text
from llmd.chat.tokenizers.special_tokens import SpecialToken, SpecialTokenSplitter

SPLITTER = SpecialTokenSplitter([SpecialToken("<|call|>", 7), SpecialToken("<|end|>", 9)])


def test_control_tokens_are_tokens_and_the_rest_is_literal() -> None:
    assert exact_text('say "a"<|end|><|call|>\n', SPLITTER) == r'"say \"a\"" <[9]> <[7]> "\n"'


def test_no_text_is_no_expression() -> None:
    assert exact_text("", SPLITTER) == ""
