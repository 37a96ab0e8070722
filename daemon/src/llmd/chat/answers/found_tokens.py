"""Convert a beam search result to the token outputs of ordinary sampling."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api.results import Hypothesis, TokenOutput


def found_tokens(request_id: int, found: Hypothesis) -> Iterator[TokenOutput]:
    """Yield the tokens of a hypothesis; the last has the finish reason."""
    last = len(found.tokens) - 1
    for place, token in enumerate(found.tokens):
        yield TokenOutput(
            request_id,
            token,
            found.finish if place == last else None,
            found.logprobs[place] if found.logprobs else None,
        )
