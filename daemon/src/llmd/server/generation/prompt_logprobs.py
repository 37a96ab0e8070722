"""Log-probabilities of a prompt's tokens, in the two forms that clients ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llmd.api.results import Logprobs
from llmd.chat.answers.answer_text import Alternative, AnswerToken
from llmd.chat.tokenizers.detokenizer import IncrementalDetokenizer
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.server.generation.logprobs import finite


def prompt_tokens(
    tokenizer: Tokenizer, prompt: Sequence[int], scores: Sequence[Logprobs], wanted: int, text_len: int
) -> tuple[AnswerToken, ...]:
    """Return a prompt as the beginning of its answer.
    ``scores`` covers all tokens except the first, which has none.

    ``text_len`` is how many characters of the prompt the answer repeats: text that the tokenizer adds before
    them does not count in the offsets.
    """
    detokenizer = IncrementalDetokenizer(tokenizer, at_text_start=True, skip_special=False)
    starts, length = [], 0
    for token in prompt:
        starts.append(length)
        length += len(detokenizer.feed(token))
    before = max(0, length + len(detokenizer.finish()) - text_len)
    places = [max(0, start - before) for start in starts]
    return (
        AnswerToken(prompt[0], places[0]),
        *(
            AnswerToken(token, place, score.chosen, _alternatives(score, wanted))
            for token, place, score in zip(prompt[1:], places[1:], scores, strict=True)
        ),
    )


def prompt_entries(
    tokenizer: Tokenizer, prompt: Sequence[int], scores: Sequence[Logprobs], wanted: int
) -> list[dict[str, Any] | None]:
    """Return vLLM's ``prompt_logprobs``: for each token an object keyed by token id; null for the first.

    Each contains the ``wanted`` most likely tokens and the prompt's token, which has a rank only if it is
    among them.
    """
    return [None, *(_entry(tokenizer, *pair, wanted) for pair in zip(prompt[1:], scores, strict=True))]


def _entry(tokenizer: Tokenizer, token: int, score: Logprobs, wanted: int) -> dict[str, Any]:
    listed: dict[int, tuple[float, int | None]] = {
        other.token_id: (other.logprob, rank)
        for rank, other in enumerate(_alternatives(score, wanted), start=1)
    }
    listed.setdefault(token, (score.chosen, None))
    return {
        str(token_id): {
            "logprob": finite(logprob),
            "rank": rank,
            "decoded_token": tokenizer.token_text(token_id),
        }
        for token_id, (logprob, rank) in listed.items()
    }


def _alternatives(score: Logprobs, wanted: int) -> tuple[Alternative, ...]:
    pairs = zip(score.top_ids[:wanted], score.top[:wanted], strict=True)
    return tuple(Alternative(token_id, logprob) for token_id, logprob in pairs)
