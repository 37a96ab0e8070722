"""The options and results of `Engine.generate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from llmd.requests.beams import SearchOptions
from llmd.requests.ending import EndOptions
from llmd.requests.grammars import GrammarOptions
from llmd.requests.sampling import SamplingOptions

Finish = Literal["stop", "length", "cancelled"]
Prompt = str | Sequence[Mapping[str, str]] | Sequence[int]
"""A question, a conversation, or token ids, which are continued without a chat template."""

Callback = Callable[[str, int, float], object]
"""Called with text, id and logprob of each token; returning False ends the answer."""


class GenerationOptions(SamplingOptions, EndOptions, GrammarOptions, SearchOptions, total=False):
    """Options of an answer. If an option is absent or None, the value that the model's authors chose applies.

    Options have the names, ranges and meaning of request fields (docs/sampling.md,
    docs/structured-output.md), with these differences: ``max_tokens`` is at least 1, and without it the
    answer may fill the context window; token ids in ``logit_bias`` are integers; NumPy numbers and arrays are
    allowed.
    """

    system: str | None
    """The system message before a question.
    Not allowed with a conversation, which contains its system message.
    """
    adapter: str | None
    """The name of the LoRA adapter that answers, one of those that were loaded; None: none."""


class GeneratedToken(Struct, frozen=True):
    """One token of an answer.

    The texts of all tokens together are the answer.
    """

    text: str
    """The text that can be shown so far:
    empty while a character or a possible stop string is incomplete, then the text of several tokens.
    """
    id: int
    logprob: float
    """Natural-log probability before temperature."""
    finish: Literal["stop", "length"] | None = None
    """Set only on the last token."""


class Generated(Struct, frozen=True):
    """An answer."""

    text: str
    token_ids: tuple[int, ...]
    """All sampled tokens, including a stop token."""
    finish: Finish
    """What ended the answer: ``stop``: the model or a stop string; ``length``:
    ``max_tokens`` or the context window; ``cancelled``: the callback.
    """
    prompt_tokens: int
    output_tokens: int
    tokens_per_s: float | None
    """The rate after the first token; None for fewer than two tokens."""
