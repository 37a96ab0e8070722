"""Parts of items."""

from __future__ import annotations

from tests.serving.open_responses.shape import Shape, TypedShape


class TopLogprob(Shape, frozen=True):
    token: str
    logprob: float
    bytes: list[int]


class Logprob(Shape, frozen=True):
    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[TopLogprob]


class OutputText(TypedShape, frozen=True, tag="output_text"):
    """``annotations`` are citations, which no model here makes."""

    text: str
    annotations: list[None]
    logprobs: list[Logprob]


class SummaryText(TypedShape, frozen=True, tag="summary_text"):
    text: str


class ReasoningText(TypedShape, frozen=True, tag="reasoning_text"):
    text: str
