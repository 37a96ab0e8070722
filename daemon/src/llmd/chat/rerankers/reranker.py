"""A generating model that ranks: asked about a query and a document, it answers with one of two tokens.

Sources: Zhang et al. 2025, "Qwen3 Embedding", section 2 (the relevance of a document is the probability of "yes" among
"yes" and "no"); sentence-transformers' ``LogitScore``, which is the log of its odds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from llmd.chat.templates.literals import RenderedPrompt
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.templates.template_files import ChatTemplate


class Reranker(Struct, frozen=True):
    """How a model is asked, and which of its tokens mean that a document answers the query, and that it does not.

    ``template`` renders a message of the role ``query`` and one of the role ``document``; a system message is the
    instruction, ``instruction`` where a request has none, which may be empty.
    """

    template: ChatTemplate
    true_id: int
    false_id: int
    instruction: str = ""
    add_generation_prompt: bool = False

    @property
    def answer_ids(self) -> tuple[int, int]:
        """The tokens whose logprobs `score` takes, in this order."""
        return self.true_id, self.false_id

    def render(
        self, renderer: TemplateRenderer, query: str, document: str, instruction: str | None = None
    ) -> RenderedPrompt:
        """The prompt about a document. Blocks.

        Raises:
            TemplateError: the template is broken or too slow.
            RequestError: the template refuses the texts.
        """
        asked = self.instruction if instruction is None else instruction
        system = [{"role": "system", "content": asked}] if asked else []
        pair = [{"role": "query", "content": query}, {"role": "document", "content": document}]
        return renderer.render(
            self.template, [*system, *pair], add_generation_prompt=self.add_generation_prompt
        )


def relevance(logprobs: Sequence[float]) -> float:
    """The probability of the first of two answers among both, of the logprob of each: in [0, 1], the higher the better."""
    true, false = logprobs
    return logistic(true - false)


def logistic(log_odds: float) -> float:
    """The probability with these log odds."""
    return 1.0 / (1.0 + math.exp(min(-log_odds, 700.0)))
