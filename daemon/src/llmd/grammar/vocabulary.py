"""Convert a vocabulary for llguidance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llmd.api.messages import Vocabulary

if TYPE_CHECKING:
    from llguidance import LLTokenizer


class _Tokens:
    """The tokenizer members that llguidance reads. The last id, not a model token, marks an answer's end."""

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
    """Return the trie of all tokens; id ``vocab_size`` is allowed if an answer may end.

    This takes half a second and 70 MB for 150,000 tokens and holds the GIL meanwhile, so no other thread
    runs.
    """
    from llguidance import LLTokenizer

    # It reads only the members above; its own wrapper would call the function as a test.
    return LLTokenizer(_Tokens(vocabulary, vocab_size), n_vocab=vocab_size + 1)  # type: ignore[arg-type]
