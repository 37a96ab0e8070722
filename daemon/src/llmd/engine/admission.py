"""Refuse requests that an engine could never run."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.errors import MemoryBudgetError, RequestError
from llmd.api.messages import BeamParams, Submit
from llmd.api.samplers import SamplingParams
from llmd.api.step import BLOCK_LEN, NUM_CANDIDATES
from llmd.engine.limits import EngineLimits
from llmd.pager.pager import Pager
from llmd.scheduler.sequence import Sequence as Running


class Admission:
    """Refuses requests that could never run; the messages have the numbers."""

    def __init__(self, limits: EngineLimits, pager: Pager, pool_tokens: int) -> None:
        """``pool_tokens`` is the capacity of the KV pool in tokens."""
        self._limits = limits
        self._pager = pager
        self._pool_tokens = pool_tokens

    def check(self, submit: Submit) -> None:
        """Check a request.

        Raises:
            RequestError: it could never run: it is too long, has an invalid token, names an adapter that the
                engine does not have, or has nothing to do.
            MemoryBudgetError: it does not fit the whole KV pool.
        """
        tokens = [*submit.prompt, *submit.output]
        max_new = submit.stop.max_tokens - len(submit.output)
        scores_alone = submit.prompt_logprobs is not None and not submit.output
        if max_new < (0 if scores_alone else 1):
            raise RequestError(
                f"max_tokens is {submit.stop.max_tokens} and the request already has {len(submit.output)} output"
                " tokens: there is nothing to generate",
                param="max_tokens",
                hint="ask for at least one new token",
            )
        self.check_tokens(tokens, max_new)
        self._check_ids(submit.sampling)
        self.check_adapter(submit.adapter)
        if submit.beams is None:
            self.check_pool(len(tokens) + max_new)
        else:
            self._check_beams(submit, submit.beams)

    def _check_beams(self, submit: Submit, beams: BeamParams) -> None:
        """Check that all beams can run to their full length, with a shared prompt."""
        if submit.output or submit.prompt_logprobs is not None:
            raise RequestError(
                "a beam search can neither continue an output nor score its prompt",
                param="use_beam_search",
                hint="send two separate requests",
            )
        if not 1 <= beams.best <= beams.width <= self._limits.slots:
            raise RequestError(
                f"{beams.best} answers of {beams.width} beams are requested, but only {self._limits.slots}"
                " sequences run at once",
                param="use_beam_search",
                hint="ask for fewer beams, and for no more answers than beams, or serve with more --slots",
            )
        if beams.width + len(submit.stop.stop_ids) > NUM_CANDIDATES:
            raise RequestError(
                f"{beams.width} beams with {len(submit.stop.stop_ids)} stop ids need"
                f" {beams.width + len(submit.stop.stop_ids)} candidates each, but a step returns {NUM_CANDIDATES}",
                param="stop_token_ids",
                hint="ask for fewer beams or stop ids",
            )
        self._check_forks(len(submit.prompt), submit.stop.max_tokens, beams.width)

    def _check_forks(self, prompt_len: int, max_new: int, width: int) -> None:
        if shortage := self._pager.shortage(prompt_len + max_new, width, prompt_len):
            needed, there = shortage
            raise MemoryBudgetError(
                f"{width} beams of {max_new} tokens after a prompt of {prompt_len} need up to {needed} blocks of"
                f" {BLOCK_LEN} tokens, the KV pool has {there}",
                hint="lower max_tokens or the number of beams, or serve with a larger --kv-memory",
            )

    def _check_ids(self, params: SamplingParams) -> None:
        """Check the token ids in all parameters."""
        named = {
            "logit_bias": [token for token, _ in params.logit_bias],
            "bad_words": [token for run in params.bad_words for token in run],
            "allowed_token_ids": params.allowed_ids,
            "logprob_ids": params.logprob_ids,
        }
        for param, ids in named.items():
            if ids and not 0 <= min(ids) <= max(ids) < self._limits.vocab_size:
                raise RequestError(
                    f"{param} names ids {min(ids)}..{max(ids)}, the vocabulary has"
                    f" 0..{self._limits.vocab_size - 1}",
                    param=param,
                    hint="use the tokenizer of this model",
                )

    def check_adapter(self, name: str) -> None:
        """Check that the model has an adapter; an empty name means none.

        Raises:
            RequestError: it has no adapter of that name.
        """
        if name and name not in self._limits.adapters:
            loaded = ", ".join(self._limits.adapters) or "none"
            raise RequestError(
                f"the model was loaded without the adapter {name}; its adapters are {loaded}",
                param="model",
                hint="`llmd stop` the model: the next request loads it with the adapters of the settings",
            )

    def check_pool(self, total_len: int) -> None:
        """Check that a sequence of ``total_len`` tokens fits the whole KV pool.

        Raises:
            MemoryBudgetError: it does not fit.
        """
        if not self._pager.fits_ever(total_len):
            raise MemoryBudgetError(
                f"prompt and max_tokens together are {total_len} tokens, the KV pool holds"
                f" {self._pool_tokens}",
                hint="lower max_tokens, or serve with a larger --kv-memory",
            )

    def check_room(self, sequence: Running, width: int) -> None:
        """Check that a sequence, or ``width`` beams of it, fits the whole KV pool to its full length.

        Raises:
            MemoryBudgetError: it does not fit.
        """
        if width == 1:
            self.check_pool(sequence.total_len)
        else:
            self._check_forks(sequence.prompt_len, sequence.stop.max_tokens, width)

    def check_tokens(self, tokens: Sequence[int], max_new: int) -> None:
        """Check a prompt.

        Raises:
            RequestError: it has no tokens, too many tokens, or a token outside the vocabulary.
        """
        if not tokens:
            raise RequestError("the prompt has no tokens", param="prompt", hint="send at least one token")
        if len(tokens) + max_new > self._limits.context_len:
            raise RequestError(
                f"{len(tokens)} prompt tokens and {max_new} new ones do not fit a context of"
                f" {self._limits.context_len}",
                param="max_tokens",
                hint="lower max_tokens or shorten the prompt",
            )
        if min(tokens) < 0 or max(tokens) >= self._limits.vocab_size:
            raise RequestError(
                f"token ids reach {min(tokens)}..{max(tokens)}, the vocabulary has 0..{self._limits.vocab_size - 1}",
                param="prompt",
                hint="use the tokenizer of this model",
            )
