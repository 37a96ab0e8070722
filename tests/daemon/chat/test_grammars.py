from __future__ import annotations

from llmd.chat.model_text import ModelText
from tests.serving.model import TURN_END


def test_vocabulary_has_the_bytes_of_every_token_and_knows_those_that_are_no_text(text: ModelText) -> None:
    vocabulary = text.grammars.vocabulary
    assert vocabulary.tokens[:256] == tuple(bytes([value]) for value in range(256))
    assert vocabulary.tokens[256:] == (b"<s>", b"<|im_start|>", b"<|im_end|>")
    assert vocabulary.special_ids == (256, 257, 258)
    assert vocabulary.end_ids == (TURN_END,)
