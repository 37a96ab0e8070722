"""The loop's body: admit, plan, run one step, draw tokens. Used by the engine process and in a caller's own."""

from __future__ import annotations

import itertools
import time

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import MemoryBudgetError, RequestError
from llmd.api.messages import (
    Logprobs,
    Output,
    Report,
    SamplingParams,
    Started,
    StopParams,
    Submit,
    TokenOutput,
)
from llmd.api.plan import KVGroup
from llmd.api.step import StepResult
from llmd.engine.batch import build_selection, build_step, select_rows
from llmd.engine.chain import Chain, Flight
from llmd.engine.kv_budget import KVBudget
from llmd.pager.pager import Pager
from llmd.sampling.edits import LogitEdits
from llmd.sampling.sampler import draw
from llmd.scheduler.chunk import Chunk
from llmd.scheduler.scheduler import Scheduler, StepPlan
from llmd.scheduler.sequence import Sequence

CHUNK_LEN = 256
"""Prefill tokens in one step."""

_FORWARD_ID = -1


class Limits(msgspec.Struct, frozen=True):
    """What the core was built for. ``max_outputs`` bounds the rows of one step that return logits."""

    vocab_size: int
    context_len: int
    slots: int
    max_outputs: int


class _Counters(msgspec.Struct):
    steps: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0


class EngineCore:
    """Sequences of one model. Not thread-safe: one loop owns it."""

    def __init__(self, chain: Chain, groups: tuple[KVGroup, ...], budget: KVBudget, limits: Limits) -> None:
        self._chain = chain
        self._budget = budget
        self._limits = limits
        self._pager = Pager(
            groups,
            budget.num_blocks,
            max_sequences=limits.slots + 1,  # one for `forward`
            max_len=limits.context_len,
            chunk_len=CHUNK_LEN,
        )
        self._scheduler = Scheduler(self._pager, slots=limits.slots, chunk_len=CHUNK_LEN)
        self._arrivals = itertools.count()
        self._edits: dict[int, LogitEdits] = {}
        self._counters = _Counters()

    @property
    def busy(self) -> bool:
        return bool(self._scheduler.running or self._scheduler.waiting)

    def submit(self, submit: Submit) -> None:
        """Queue a request.

        Raises:
            RequestError: it could never run: a token outside the vocabulary, too long, nothing to do.
            MemoryBudgetError: the KV pool is too small for it, however long it waited.
        """
        sequence = Sequence.of(submit, next(self._arrivals))
        self._check(sequence)
        if LogitEdits.wanted(submit.sampling):
            edits = LogitEdits(submit.sampling, self._limits.vocab_size, submit.prompt, submit.output)
            self._edits[submit.request_id] = edits
        self._scheduler.add(sequence)

    def cancel(self, request_id: int) -> None:
        """Forget a request and free its blocks; unknown ids are ignored."""
        self._scheduler.remove(request_id)
        self._edits.pop(request_id, None)

    def step(self) -> Output:
        """Run one step; returns the tokens it gave.

        Raises:
            DeviceError: a device failed. Tokens and lengths of all sequences are as before.
        """
        began = time.perf_counter()
        plan = self._scheduler.plan()
        tables = self._pager.tables([chunk.sequence.request_id for chunk in plan.chunks])
        step = build_step(plan.chunks, tables, self._pager.copies())
        selection, ending = build_selection(step, plan.chunks, self._edits)
        with self._chain.submit(step, selection) as flight:
            result = flight.wait()
            drawn = [_draw(flight, result, row, chunk.sequence) for row, chunk in enumerate(ending)]
        self._pager.forget_copies()
        for chunk in plan.chunks:
            self._pager.advance(chunk.sequence.request_id, chunk.count)
        tokens = tuple(
            self._append(chunk.sequence, *found) for chunk, found in zip(ending, drawn, strict=True)
        )
        self._count(plan, len(tokens), time.perf_counter() - began)
        started = tuple(Started(sequence.request_id, cached) for sequence, cached in plan.started)
        return Output(tokens, started)

    def forward(self, token_ids: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return the logits float32 ``[len(token_ids), vocab]`` after each token, from an empty cache.

        Raises:
            RequestError: no tokens, too many, or one outside the vocabulary.
            MemoryBudgetError: the KV pool is too small, or running requests hold the blocks that this needs.
        """
        self._check_tokens(token_ids.tolist(), max_new=0)
        self._check_pool(len(token_ids))
        if self._pager.open(_FORWARD_ID, token_ids.tolist(), None) is None:
            raise MemoryBudgetError(
                f"no {len(token_ids)} tokens of KV are free",
                hint="wait for running requests, or raise the budget",
            )
        try:
            size = min(self._limits.max_outputs, CHUNK_LEN)
            return np.concatenate(
                [self._forward_chunk(token_ids[at : at + size]) for at in range(0, len(token_ids), size)]
            )
        finally:
            self._pager.free(_FORWARD_ID)

    def report(self) -> Report:
        counters = self._counters
        total = sum(pool.num_blocks for pool in self._pager.pools)
        return Report(
            steps=counters.steps,
            running=len(self._scheduler.running),
            waiting=len(self._scheduler.waiting),
            prompt_tokens=counters.prompt_tokens,
            cached_tokens=counters.cached_tokens,
            output_tokens=counters.output_tokens,
            preemptions=self._scheduler.preemptions,
            prefill_s=counters.prefill_s,
            decode_s=counters.decode_s,
            kv_blocks_used=total - sum(pool.num_free for pool in self._pager.pools),
            kv_blocks_total=total,
        )

    def reset_counters(self) -> None:
        self._counters = _Counters()

    def close(self) -> None:
        self._chain.close()

    def _forward_chunk(self, token_ids: NDArray[np.integer]) -> NDArray[np.float32]:
        start = self._pager.length(_FORWARD_ID)
        tokens = [0] * start + token_ids.tolist()  # only those from ``start`` on are read
        sequence = Sequence(
            _FORWARD_ID, tokens, len(tokens), SamplingParams(seed=0), StopParams(max_tokens=0)
        )
        took = self._pager.prepare(_FORWARD_ID, len(token_ids))
        assert took, "the blocks were free when the sequence was opened"
        step = build_step([Chunk(sequence, start, len(token_ids))], self._pager.tables([_FORWARD_ID]))
        rows = np.arange(len(token_ids), dtype=np.int32)
        with self._chain.submit(step, select_rows(rows)) as flight:
            flight.wait()
            self._pager.advance(_FORWARD_ID, len(token_ids))
            return flight.raw_rows(rows).copy()

    def _append(self, sequence: Sequence, token: int, logprobs: Logprobs | None) -> TokenOutput:
        finish = sequence.append(token)
        if edits := self._edits.get(sequence.request_id):
            edits.append(token)
        if finish is not None:
            self.cancel(sequence.request_id)
        return TokenOutput(sequence.request_id, token, None if finish is None else str(finish), logprobs)

    def _check(self, sequence: Sequence) -> None:
        max_new = sequence.total_len - len(sequence.tokens)
        if max_new < 1:
            raise RequestError(
                f"{sequence.stop.max_tokens} tokens are asked for, and the request has as many",
                param="max_tokens",
                hint="ask for at least one more token",
            )
        self._check_tokens(sequence.tokens, max_new)
        self._check_bias(sequence.sampling)
        self._check_pool(sequence.total_len)

    def _check_bias(self, params: SamplingParams) -> None:
        ids = [token for token, _ in params.logit_bias]
        if ids and not 0 <= min(ids) <= max(ids) < self._limits.vocab_size:
            raise RequestError(
                f"logit_bias names ids {min(ids)}..{max(ids)}, the vocabulary has 0..{self._limits.vocab_size - 1}",
                param="logit_bias",
                hint="use the tokenizer of this model",
            )

    def _check_pool(self, total_len: int) -> None:
        if not self._pager.fits_ever(total_len):
            raise MemoryBudgetError(
                f"prompt and max_tokens together are {total_len} tokens, the KV pool holds"
                f" {self._budget.max_tokens}",
                hint="lower max_tokens, or serve with a larger --memory-budget",
            )

    def _check_tokens(self, tokens: list[int], max_new: int) -> None:
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

    def _count(self, plan: StepPlan, num_tokens: int, elapsed_s: float) -> None:
        """Count a step; one that carries any prefill counts as prefill time."""
        counters = self._counters
        prefill = sum(c.count for c in plan.chunks if c.start < c.sequence.prompt_len)
        counters.steps += 1
        counters.cached_tokens += sum(cached for _, cached in plan.started)
        counters.prompt_tokens += prefill
        counters.output_tokens += num_tokens
        if prefill:
            counters.prefill_s += elapsed_s
        else:
            counters.decode_s += elapsed_s


def _draw(flight: Flight, result: StepResult, row: int, sequence: Sequence) -> tuple[int, Logprobs | None]:
    """The next token of a sequence, which is left as it was."""
    token = draw(
        result.ids[row],
        result.edited[row],
        float(result.edited_logsumexp[row]),
        sequence.sampling,
        len(sequence.tokens),
        lambda: flight.edited_row(row),
    )
    return token, _logprobs(flight, result, row, token, sequence.sampling.logprobs)


def _logprobs(
    flight: Flight, result: StepResult, row: int, token: int, wanted: int | None
) -> Logprobs | None:
    """Log-probabilities of the unmodified distribution."""
    if wanted is None:
        return None
    found = np.flatnonzero(result.ids[row] == token)
    raw = result.raw[row, found[0]] if found.size else flight.raw_rows(np.array([row], np.int32))[0, token]
    lse = float(result.raw_logsumexp[row])
    top = (result.top_raw[row, :wanted].astype(np.float64) - lse).tolist()
    return Logprobs(float(raw) - lse, tuple(result.top_ids[row, :wanted].tolist()), tuple(top))
