"""What grammars need of a model's text side."""

from __future__ import annotations

from functools import cached_property

from llmd.api.messages import Vocabulary
from llmd.chat.tokenizer import Tokenizer


class ModelGrammars:
    """The grammars of one model's answers. Everything here may block: call it in a thread."""

    def __init__(self, tokenizer: Tokenizer, end_ids: tuple[int, ...]) -> None:
        self._tokenizer = tokenizer
        self._end_ids = end_ids

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What the engine must know of the tokens; made when it is first asked for."""
        tokenizer = self._tokenizer
        return Vocabulary(
            tokens=tuple(tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)),
            special_ids=tuple(sorted(token.token_id for token in tokenizer.vocabulary.specials)),
            end_ids=self._end_ids,
        )
