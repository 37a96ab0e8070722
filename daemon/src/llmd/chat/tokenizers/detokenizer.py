"""Incremental detokenization that never returns half a character."""

from __future__ import annotations

import codecs
from collections.abc import Collection

from llmd.chat.tokenizers.tokenizer import Tokenizer


class IncrementalDetokenizer:
    """Decodes one sequence of tokens piece by piece; each token costs only its own bytes.

    Bytes of an incomplete character wait for the next token; they become U+FFFD only if no continuation can
    complete them. ``at_text_start``: the tokens begin a new text, as a chat answer does, so SentencePiece's
    leading space is dropped, as in `Tokenizer.decode`. Tokens that continue a prompt keep it. ``shown`` are
    texts of special tokens that are not skipped.
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
        """Return the text that ``token_id`` completes; empty if it is skipped or completes no character."""
        if self._skip_special and self._tokenizer.is_special(token_id) and token_id not in self._shown_ids:
            return ""
        content = self._tokenizer.token_bytes(token_id)
        if self._strips_space:
            content = content.removeprefix(b" ")
            self._strips_space = False
        return self._decoder.decode(content)

    def finish(self) -> str:
        """Return what was held back: U+FFFD for an incomplete character, else nothing."""
        return self._decoder.decode(b"", final=True)
