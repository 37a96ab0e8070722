"""Tokens to text as they come, without ever sending half a character."""

from __future__ import annotations

import codecs
from collections.abc import Collection

from llmd.chat.tokenizers.tokenizer import Tokenizer


class IncrementalDetokenizer:
    """The text of one sequence of tokens, piece by piece; each token costs its own bytes only.

    Bytes that do not yet make a character wait for the next token; U+FFFD stands for them only where no
    continuation can fix them. ``at_text_start`` says that the tokens begin a text of their own, as a chat answer
    does: the leading space of SentencePiece is then dropped, as `Tokenizer.decode` does. Tokens that continue a
    prompt keep it. ``shown`` are texts of special tokens that are not skipped.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        at_text_start: bool = False,
        skip_special: bool = True,
        shown: Collection[str] = (),
    ) -> None:
        self._tokenizer = tokenizer
        self._skip_special = skip_special
        self._shown_ids = {tokenizer.token_id(text) for text in shown}
        self._strips_space = at_text_start and tokenizer.vocabulary.strips_leading_space
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token_id: int) -> str:
        """The text that ``token_id`` completes; empty for skipped special tokens and parts of characters."""
        if self._skip_special and self._tokenizer.is_special(token_id) and token_id not in self._shown_ids:
            return ""
        content = self._tokenizer.token_bytes(token_id)
        if self._strips_space:
            content = content.removeprefix(b" ")
            self._strips_space = False
        return self._decoder.decode(content)

    def finish(self) -> str:
        """What was held back: U+FFFD for an incomplete character, else nothing."""
        return self._decoder.decode(b"", final=True)
