"""A vocabulary as llguidance wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llmd.api.messages import Vocabulary

if TYPE_CHECKING:
    from llguidance import LLTokenizer


class _Tokens:
    """What llguidance reads of a tokenizer. The last id is no token of the model: it stands for the end of an answer."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary, vocab_size: int) -> None:
        known = vocabulary.tokens[:vocab_size]
        self.tokens = [*known, *[b""] * (vocab_size - len(known)), b"<end of the answer>"]
        self.special_token_ids = [*vocabulary.special_ids, vocab_size]
        self.eos_token_id = vocab_size

    def __call__(self, text: bytes) -> list[int]:
        raise AssertionError("only grammars that force tokens ask for tokens of a text")


def token_trie(vocabulary: Vocabulary, vocab_size: int) -> LLTokenizer:
    """The trie of all tokens; id ``vocab_size`` is allowed where an answer may end.

    Takes half a second and 70 MB for 150,000 tokens, and holds the interpreter's lock meanwhile: no thread beside it runs.
    """
    from llguidance import LLTokenizer

    # It reads the members above alone; its own wrapper would only ask the function for a trial.
    return LLTokenizer(_Tokens(vocabulary, vocab_size), n_vocab=vocab_size + 1)  # type: ignore[arg-type]
