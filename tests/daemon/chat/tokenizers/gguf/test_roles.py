"""Ids, kinds and the file's booleans decide which tokens begin a text, end an answer or are special."""

from __future__ import annotations

import pytest

from llmd.chat.tokenizers.gguf.roles import swallows_space, vocabulary_of
from llmd.chat.tokenizers.gguf.vocabulary import GgufVocabulary, read_vocabulary
from tests.daemon.chat.tokenizers.gguf.metadata import CONTROL, FILE, NORMAL, UNKNOWN, stated

TOKENS = {"<s>": CONTROL, "</s>": CONTROL, "<|eot|>": NORMAL, "a": NORMAL, "<unk>": UNKNOWN, "": CONTROL}


def vocabulary(model: str = "gpt2", architecture: str = "llama", **values: object) -> GgufVocabulary:
    metadata = stated(model, TOKENS, **values) | {"general.architecture": architecture}
    return read_vocabulary(metadata, FILE)


def test_an_answer_ends_with_any_token_that_ends_a_text_a_turn_or_a_message() -> None:
    stated = vocabulary(eos_token_id=1, eot_token_id=2, eom_token_id=1)
    assert vocabulary_of(stated, adds_bos=False).eos_ids == (1, 2)


def test_control_tokens_are_special_and_those_with_a_role() -> None:
    described = vocabulary_of(vocabulary(eot_token_id=2), adds_bos=False)
    assert [token.text for token in described.specials] == ["<s>", "</s>", "<|eot|>", "<unk>"]


@pytest.mark.parametrize("stands", [True, False])
def test_what_the_file_says_of_bos_and_eos_counts(stands: bool) -> None:  # noqa: FBT001
    said = vocabulary(bos_token_id=0, eos_token_id=1, add_bos_token=stands, add_eos_token=stands)
    described = vocabulary_of(said, adds_bos=not stands, adds_eos=not stands)
    assert (described.prefix_ids, described.suffix_ids) == (((0,), (1,)) if stands else ((), ()))


def test_without_an_id_nothing_is_written() -> None:
    described = vocabulary_of(vocabulary(add_bos_token=True), adds_bos=True, adds_eos=True)
    assert (described.prefix_ids, described.suffix_ids, described.bos_id) == ((), (), None)


def test_the_size_counts_every_id() -> None:
    assert vocabulary_of(vocabulary(), adds_bos=False).size == len(TOKENS)


def test_tokens_of_phi_3_swallow_the_space_after_them_but_for_a_few() -> None:
    phi3 = vocabulary("llama", "phi3", bos_token_id=0)
    assert [token.rstrip for token in vocabulary_of(phi3, adds_bos=True).specials] == [False, True, False]
    assert not swallows_space(vocabulary("gpt2", "phi3"), "</s>")
    assert not swallows_space(vocabulary("llama", "llama"), "</s>")
