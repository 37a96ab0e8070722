"""The request that models are placed for."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.models.open_model import OpenModel
from llmd.placement.seconds import Rows

PROMPT_LEN = 512
"""Tokens of the prompt that a plan is made for."""
ANSWER_LEN = 128
"""Tokens of its answer."""


class Request(msgspec.Struct, frozen=True):
    """What a plan is made for."""

    prompt_len: int = PROMPT_LEN
    answer_len: int = ANSWER_LEN

    def prompt_steps(self, chunk_len: int) -> Iterator[Rows]:
        """Yield the steps in which the prompt is computed."""
        for first in range(0, self.prompt_len, chunk_len):
            last = min(first + chunk_len, self.prompt_len)
            yield Rows(sequences=1, rows=last - first, length=last)


TYPICAL = Request()
"""The request that models are placed for."""


def request_for(model: OpenModel) -> Request:
    """Return what a model is placed for: as much of `TYPICAL` as its context has room for.

    A model that embeds gives no answer.
    """
    most = model.plan.context_len
    if model.embedding is not None:
        return Request(min(PROMPT_LEN, most), 0)
    answer_len = min(ANSWER_LEN, max(1, most // 5))
    return Request(min(PROMPT_LEN, most - answer_len), answer_len)
