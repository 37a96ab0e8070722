from __future__ import annotations

import pytest

from llmd.chat.model_text import ModelText
from llmd.chat.tokenizers.token_runs import Breakers, find_bad_words, find_breakers
from llmd.chat.tokenizers.tokenizer import Tokenizer


def vocabulary(tokenizer: Tokenizer) -> list[bytes]:
    return [tokenizer.token_bytes(token) for token in range(tokenizer.vocab_size)]


def test_every_token_that_holds_a_breaker_breaks(tokenizer: Tokenizer) -> None:
    tokens = vocabulary(tokenizer)
    found = find_breakers(tokenizer, tokens, ["\n", "e"])
    assert found.ids
    assert set(found.ids) == {i for i, content in enumerate(tokens) if b"\n" in content or b"e" in content}
    assert found.runs == ()


@pytest.mark.parametrize("breaker", ["User:", "***", "né"])
def test_a_breaker_over_several_tokens_is_found_however_it_begins(tokenizer: Tokenizer, breaker: str) -> None:
    tokens = vocabulary(tokenizer)
    found = find_breakers(tokenizer, tokens, [breaker])
    for text in (f"Hello {breaker}", f"x{breaker}"):
        ids = tokenizer.encode_part(text, parse_special=False, at_start=True)
        ends = [tuple(ids[place:]) for place in range(len(ids))]
        assert not set(found.ids).isdisjoint(ids) or not set(found.runs).isdisjoint(ends)
    for run in found.runs:
        assert breaker.encode() in b"".join(tokens[token] for token in run)


def test_a_model_of_bytes_has_one_run_for_each_text(text: ModelText) -> None:
    tokens = vocabulary(text.tokenizer)
    assert find_breakers(text.tokenizer, tokens, ["ab", "c"]) == Breakers((ord("c"),), (tuple(b"ab"),))
    assert find_breakers(text.tokenizer, tokens, ["bcd", "c"]) == Breakers((ord("c"),), ())
    assert find_breakers(text.tokenizer, tokens, []) == Breakers()


def test_bad_words_are_written_bare_and_after_a_space(tokenizer: Tokenizer) -> None:
    tokens = vocabulary(tokenizer)
    runs = find_bad_words(tokenizer, tokens, ["Hello", " world"])
    texts = {b"".join(tokens[token] for token in run).decode() for run in runs}
    assert texts == {"Hello", " Hello", "world", " world"}
    assert len(set(runs)) == len(runs)
    assert find_bad_words(tokenizer, tokens, []) == ()
