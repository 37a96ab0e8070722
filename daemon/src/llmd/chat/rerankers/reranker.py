"""A generative model as a reranker: prompted with a query and a document, it answers with one of two tokens.

Sources: Zhang et al. 2025, "Qwen3 Embedding", section 2 (the relevance of a document is the probability of
"yes" among "yes" and "no"); sentence-transformers' ``LogitScore``, which is its log odds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from llmd.chat.templates.literals import RenderedPrompt
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.templates.template_files import ChatTemplate


class Reranker(Struct, frozen=True):
    """The prompt of a reranker, and the two tokens that it compares."""

    template: ChatTemplate
    """Renders messages of the roles ``query`` and ``document``; a system message holds the instruction."""
    true_id: int
    """The token that means: the document answers the query."""
    false_id: int
    """The token that means: it does not."""
    instruction: str = ""
    """For requests without an instruction; empty: no system message."""
    add_generation_prompt: bool = False

    @property
    def answer_ids(self) -> tuple[int, int]:
        """The tokens whose logprobs `relevance` takes, in this order."""
        return self.true_id, self.false_id

    def render(
        self, renderer: TemplateRenderer, query: str, document: str, instruction: str | None = None
    ) -> RenderedPrompt:
        """Render the prompt for a document. Blocks.

        Raises:
            TemplateError: the template is broken or too slow.
            RequestError: the template rejects the texts.
        """
        asked = self.instruction if instruction is None else instruction
        system = [{"role": "system", "content": asked}] if asked else []
        pair = [{"role": "query", "content": query}, {"role": "document", "content": document}]
        return renderer.render(
            self.template, [*system, *pair], add_generation_prompt=self.add_generation_prompt
        )


def relevance(logprobs: Sequence[float]) -> float:
    """Return the probability of the first of two answers from both logprobs: in [0, 1], higher is better."""
    true, false = logprobs
    return logistic(true - false)


def logistic(log_odds: float) -> float:
    """Return the probability that has these log odds."""
    return 1.0 / (1.0 + math.exp(min(-log_odds, 700.0)))
