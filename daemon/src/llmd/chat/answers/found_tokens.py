"""The answers of a beam search, as the tokens that would have been drawn one by one."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api.messages import Hypothesis, TokenOutput


def found_tokens(request_id: int, found: Hypothesis) -> Iterator[TokenOutput]:
    """The tokens of an answer; the last says why it ended."""
    last = len(found.tokens) - 1
    for place, token in enumerate(found.tokens):
        yield TokenOutput(
            request_id,
            token,
            found.finish if place == last else None,
            found.logprobs[place] if found.logprobs else None,
        )
