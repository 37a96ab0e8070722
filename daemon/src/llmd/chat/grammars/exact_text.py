"""A text with control tokens as a grammar in llguidance's Lark."""

from __future__ import annotations

from llmd.chat.tokenizers.special_tokens import SpecialTokenSplitter
from llmd.grammar.lark import control_token, literal


def exact_text(text: str, splitter: SpecialTokenSplitter) -> str:
    """Return a Lark expression for exactly this text, in which the tokens of ``splitter`` are tokens."""
    return " ".join(
        literal(piece.text) if piece.token is None else control_token(piece.token.token_id)
        for piece in splitter.split(text)
    )
