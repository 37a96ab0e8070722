"""Which requests an engine can ever run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from llmd.api.errors import MemoryBudgetError, RequestError
from llmd.api.messages import CHUNK_LEN, SamplingParams, Submit
from llmd.pager.pager import Pager


class Limits(msgspec.Struct, frozen=True):
    """What the core was built for.

    ``max_outputs`` bounds the rows of one step that return logits, ``chunk_len`` its prefill tokens. ``queues``: the
    devices take a step while they work on the one before.
    """

    vocab_size: int
    context_len: int
    slots: int
    max_outputs: int
    chunk_len: int = CHUNK_LEN
    queues: bool = False

    @property
    def max_planned(self) -> int:
        """The most tokens of one sequence that are on their way at a time."""
        return self.chunk_len * (2 if self.queues else 1)


class Admission:
    """Refuses what could never run, with the numbers."""

    def __init__(self, limits: Limits, pager: Pager, pool_tokens: int) -> None:
        """``pool_tokens`` is how many tokens the KV pool holds."""
        self._limits = limits
        self._pager = pager
        self._pool_tokens = pool_tokens

    def check(self, submit: Submit) -> None:
        """Check a request.

        Raises:
            RequestError: it could never run: a token outside the vocabulary, too long, nothing to do.
            MemoryBudgetError: the KV pool is too small for it, however long it waited.
        """
        tokens = [*submit.prompt, *submit.output]
        max_new = submit.stop.max_tokens - len(submit.output)
        scores_alone = submit.prompt_logprobs is not None and not submit.output
        if max_new < (0 if scores_alone else 1):
            raise RequestError(
                f"{submit.stop.max_tokens} tokens are asked for, and the request has as many",
                param="max_tokens",
                hint="ask for at least one more token",
            )
        self.check_tokens(tokens, max_new)
        self._check_ids(submit.sampling)
        self.check_pool(len(tokens) + max_new)

    def _check_ids(self, params: SamplingParams) -> None:
        """Check the ids of all parameters that name some."""
        named = {
            "logit_bias": [token for token, _ in params.logit_bias],
            "bad_words": [token for run in params.bad_words for token in run],
            "allowed_token_ids": params.allowed_ids,
        }
        for param, ids in named.items():
            if ids and not 0 <= min(ids) <= max(ids) < self._limits.vocab_size:
                raise RequestError(
                    f"{param} names ids {min(ids)}..{max(ids)}, the vocabulary has"
                    f" 0..{self._limits.vocab_size - 1}",
                    param=param,
                    hint="use the tokenizer of this model",
                )

    def check_pool(self, total_len: int) -> None:
        """Raises `MemoryBudgetError` for what does not fit the whole pool."""
        if not self._pager.fits_ever(total_len):
            raise MemoryBudgetError(
                f"prompt and max_tokens together are {total_len} tokens, the KV pool holds"
                f" {self._pool_tokens}",
                hint="lower max_tokens, or serve with a larger --kv-memory",
            )

    def check_tokens(self, tokens: Sequence[int], max_new: int) -> None:
        """Raises `RequestError` for no tokens, too many, or one outside the vocabulary."""
        if not tokens:
            raise RequestError("the prompt has no tokens", param="prompt", hint="send at least one token")
        if len(tokens) + max_new > self._limits.context_len:
            raise RequestError(
                f"{len(tokens)} prompt tokens and {max_new} new ones do not fit a context of"
                f" {self._limits.context_len}",
                param="max_tokens",
                hint="lower max_tokens, shorten the prompt, or serve with a larger --max-ctx",
            )
        if min(tokens) < 0 or max(tokens) >= self._limits.vocab_size:
            raise RequestError(
                f"token ids reach {min(tokens)}..{max(tokens)}, the vocabulary has 0..{self._limits.vocab_size - 1}",
                param="prompt",
                hint="use the tokenizer of this model",
            )
