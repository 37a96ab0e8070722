"""The body of the engine loop: admit, plan, run one step, sample.
Used by the engine process and by `llmd.Engine`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import LlmdError
from llmd.api.messages import PackedVocabulary, Submit, Vocabulary
from llmd.api.plan import KVGroup
from llmd.api.reports import Blocks, Report
from llmd.api.results import Failed, Output, Started, TokenOutput
from llmd.engine.admission import Admission
from llmd.engine.beams import Beams
from llmd.engine.counters import Counters
from llmd.engine.failures import failure
from llmd.engine.forward import Forward
from llmd.engine.grammars.grammars import Grammars
from llmd.engine.limits import EngineLimits
from llmd.engine.placement.kv_budget import KVBudget
from llmd.engine.pool_use import pool_use
from llmd.engine.prompt_scores import PromptScores
from llmd.engine.rebuilding import new_pager, without_room
from llmd.engine.sequence_states import sequence_states
from llmd.engine.step_reads import KVReads
from llmd.engine.steps.in_flight import StepsInFlight
from llmd.engine.steps.pipeline import Pipeline
from llmd.engine.steps.step import InFlightStep, SampledTokens
from llmd.engine.steps.step_trace import Tracer
from llmd.pager.pager import Pager
from llmd.sampling.sampler import Sampler
from llmd.scheduler.proposer import Proposer
from llmd.scheduler.scheduler import Scheduler
from llmd.scheduler.sequence import Finish, Sequence

_GRAMMAR_WAIT_S = 0.005
"""How long an idle engine waits for a grammar before it checks for messages."""


class EngineCore:
    """Runs the sequences of one model. Not thread-safe: one loop owns it."""

    def __init__(
        self,
        pipeline: Pipeline,
        groups: tuple[KVGroup, ...],
        budget: KVBudget,
        limits: EngineLimits,
        proposer: Proposer | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        """``proposer`` guesses up to ``limits.max_drafts`` tokens of each sequence; None: no speculation.
        ``tracer`` measures the steps; None: nothing does.
        """
        self._tracer = tracer
        self._pipeline = pipeline
        self._limits = limits
        self._groups = groups
        self._pager = new_pager(groups, budget, limits)
        self._scheduler = Scheduler(
            self._pager,
            slots=limits.slots,
            chunk_len=limits.chunk_len,
            scored_rows=limits.scored_rows,
            micro_batches=limits.micro_batches,
            proposer=proposer,
            max_drafts=limits.max_drafts,
        )
        self._admission = Admission(limits, self._pager, budget.max_tokens)
        self._forward = Forward(pipeline, self._pager, self._admission, limits)
        self._arrivals = itertools.count()
        self._sampler = Sampler(limits.vocab_size)
        self._scores = PromptScores()
        self._grammars = Grammars(limits.vocab_size, limits.max_outputs)
        self._beams = Beams(self._scheduler, self._sampler, self._grammars)
        self._in_flight = self._steps_in_flight(pipeline, limits)
        self._counters = Counters()
        self._kv_reads = KVReads.of(groups, pipeline.block_bytes)

    @property
    def pager(self) -> Pager:
        """The pager of the KV cache; read it only between steps."""
        return self._pager

    @property
    def busy(self) -> bool:
        """Whether `step` has work to do."""
        return self._has_rows or self._grammars.pending

    @property
    def _has_rows(self) -> bool:
        return bool(self._scheduler.running or self._scheduler.waiting or self._in_flight)

    def set_vocabulary(self, vocabulary: Vocabulary | PackedVocabulary) -> None:
        """Set the vocabulary for grammars. Call it before the first request with a grammar."""
        self._grammars.set_vocabulary(vocabulary)

    def submit(self, submit: Submit) -> None:
        """Queue a request.

        Raises:
            RequestError: it can never run: a token is outside the vocabulary, it is too long, or it has
                nothing to do.
            MemoryBudgetError: the KV pool is too small for it, even when empty.
            GrammarError: it has a grammar, but no vocabulary was set. `step` reports a grammar that does not
                compile.
        """
        self._admission.check(submit)
        was_idle, arrival = not self.busy, next(self._arrivals)
        first = submit if submit.beams is None else self._beams.open(submit)
        if submit.grammar is None:
            self._add(Sequence.of(first, arrival))
        else:
            self._open_grammar(first, arrival)
        self._scores.add(first)
        self._sampler.add(first.request_id, first.sampling, first.prompt, first.output, first.state)
        if was_idle:
            self._counters.begin()

    def _open_grammar(self, submit: Submit, arrival: int) -> None:
        try:
            self._grammars.open(submit, arrival)
        except LlmdError:
            self._beams.close(self._beams.owner(submit.request_id))
            raise

    def _add(self, sequence: Sequence) -> None:
        self._scheduler.add(self._beams.lead(sequence))

    def cancel(self, request_id: int) -> None:
        """Forget a request and free its blocks; unknown ids are ignored."""
        for sequence_id in (request_id, *self._beams.close(request_id)):
            self._scheduler.remove(sequence_id)
            self._sampler.remove(sequence_id)
            self._scores.remove(sequence_id)
            self._grammars.close(sequence_id)

    def step(self) -> Output:
        """Finish a step and return its tokens.
        If the devices queue steps, the next steps are then already in flight.

        Raises:
            DeviceError: a device failed. All sequences are as they were after the last completed step.
        """
        if not self._has_rows:
            self._grammars.wait(_GRAMMAR_WAIT_S)
        for sequence in self._grammars.compiled():
            self._add(sequence)
        if not self._has_rows:
            return Output((), failed=self._failed())
        try:
            self._in_flight.fill()
            step = self._in_flight.take()
            with step.tickets:
                return self._finish(step)
        except BaseException:
            self._in_flight.drop()
            raise

    def _finish(self, step: InFlightStep) -> Output:
        """Draw the tokens of a step, and launch the next step as early as possible."""
        drawn = step.draw()
        self._in_flight.on_drawn(drawn.tokens)
        with step.trace.span("append"):
            finishes = self._append(step, drawn)
        self._in_flight.on_appended(drawn.tokens)
        # From here on the device works on the next step.
        with step.trace.span("finish"):
            output = self._complete(step, drawn, finishes)
        step.end_trace()
        return output

    def _append(self, step: InFlightStep, drawn: SampledTokens) -> dict[int, Finish | None]:
        """Append the tokens of a step to their sequences.

        Returns:
            For each row whose token counts: why its sequence ends with it, or None if it continues.
        """
        finishes: dict[int, Finish | None] = {}
        failed, accept = self._grammars.has_failed, self._sampler.accept
        for row, sequence in enumerate(step.drawing):
            if sequence.ended:
                continue
            if sequence.group is not None:
                self._beams.take(sequence, row, drawn.result)
                continue
            if failed(sequence.request_id):
                continue
            if step.assumed and step.assumed[row]:
                before = finishes.get(row - 1, Finish.STOP)
                if before is not None or not step.reaches(row, drawn):
                    continue
            accept(sequence.request_id, row, drawn.draws)
            finishes[row] = sequence.append(drawn.tokens[row])
            if finishes[row] is not None:
                self._grammars.close(sequence.request_id)
        return finishes

    def _complete(
        self, step: InFlightStep, drawn: SampledTokens, finishes: dict[int, Finish | None]
    ) -> Output:
        """Commit what a step wrote to the KV cache, free finished requests, and return the step's tokens."""
        self._pager.copied(step.copies)
        for chunk in step.plan.chunks:
            self._scheduler.complete(chunk)
        self._scores.take(step.plan.chunks, drawn.result, len(step.drawing))
        outputs = []
        for row, finish in finishes.items():
            request_id = step.drawing[row].request_id
            details = finish and str(finish), drawn.logprobs.get(row), self._sampler.state(request_id)
            outputs.append(TokenOutput(request_id, drawn.tokens[row], *details, self._scores.pop(request_id)))
            if finish is not None:
                self.cancel(request_id)
        beams = self._beams.advance()
        for ended in beams:
            self.cancel(ended.request_id)
        num_tokens = len(outputs) + sum(len(found.tokens) for ended in beams for found in ended.hypotheses)
        self._counters.count(step.plan, num_tokens, self._kv_reads, step.tickets.stages_s)
        running_s = time.perf_counter() - step.planned_at
        started = tuple(Started(one.owner_id, cached, running_s) for one, cached in step.plan.started)
        step_s = self._pipeline.new_computing_s(self._limits.max_rows)
        return Output(tuple(outputs), started, self._failed(), beams, step_s)

    def _failed(self) -> tuple[Failed, ...]:
        """End the requests whose grammar cannot be followed or whose beam search finds no answer."""
        failed = {
            self._beams.owner(sequence_id): error
            for sequence_id, error in self._grammars.failed().items()
            if not self._beams.lose(sequence_id, error)
        } | self._beams.failed()
        return self._end(failed)

    def _end(self, failed: Mapping[int, LlmdError]) -> tuple[Failed, ...]:
        for request_id in failed:
            self.cancel(request_id)
        return tuple(failure(request_id, error) for request_id, error in failed.items())

    def rebuild(self, pipeline: Pipeline, budget: KVBudget, limits: EngineLimits) -> tuple[Failed, ...]:
        """Go on with another pipeline, after `step` has raised: all requests wait again with their tokens.

        They keep order, grammars, samplers and beams, and get the same tokens as without the failure; only
        the prefix cache is lost. ``limits`` may differ from the earlier ones in how steps overlap.

        Returns:
            The requests that have ended because the KV pool has become too small for them.
        """
        self._in_flight.drop()
        self._pager = new_pager(self._groups, budget, limits)
        self._scheduler.move(self._pager, limits.micro_batches)
        self._in_flight = self._steps_in_flight(pipeline, limits)
        self._pipeline, self._limits = pipeline, limits
        self._counters.placed()
        self._kv_reads = KVReads.of(self._groups, pipeline.block_bytes)
        self._admission = Admission(limits, self._pager, budget.max_tokens)
        self._forward = Forward(pipeline, self._pager, self._admission, limits)
        live = (*self._scheduler.waiting, *self._grammars.waiting)
        return self._end(without_room(live, self._beams, self._admission))

    def _steps_in_flight(self, pipeline: Pipeline, limits: EngineLimits) -> StepsInFlight:
        return StepsInFlight(
            pipeline,
            self._scheduler,
            self._pager,
            self._sampler,
            self._grammars,
            limits.depth,
            self._tracer,
            limits.adapters,
        )

    def forward(self, token_ids: NDArray[np.integer], adapter: str = "") -> NDArray[np.float32]:
        """Return the logits float32 ``[len(token_ids), vocab]`` after each token, from an empty cache.

        Raises:
            RequestError: no tokens, too many, or one outside the vocabulary; or no such ``adapter``.
            MemoryBudgetError: the KV pool is too small, or running requests occupy the blocks that are
                needed.
        """
        return self._forward(token_ids, adapter)

    def report(self, *, sequences: bool = False) -> Report:
        """Return the counters; with ``sequences``, also the state of each sequence."""
        counters, states = self._counters, None
        if sequences:
            states = tuple(
                sequence_states(self._scheduler, self._pager, self._grammars, self._beams, self._limits.slots)
            )
        use = pool_use(self._groups, self._pager.pools, self._pipeline.block_bytes)
        return Report(
            steps=counters.steps,
            running=len(self._scheduler.running),
            waiting=self._scheduler.num_waiting,
            prompt_tokens=counters.prompt_tokens,
            cached_tokens=counters.cached_tokens,
            output_tokens=counters.output_tokens,
            preemptions=self._scheduler.preemptions,
            prefill_s=counters.prefill_s,
            decode_s=counters.decode_s,
            kv_blocks_used=use.blocks_used,
            kv_blocks_total=use.blocks,
            state_bytes_used=use.state_bytes_used,
            state_bytes_total=use.state_bytes,
            decode_steps=counters.decode_steps,
            decode_rows=counters.decode_rows,
            decode_kv_bytes=counters.decode_kv_bytes,
            single_steps=counters.single_steps,
            single_s=counters.single_s,
            timed_steps=counters.timed_steps,
            stages_s=counters.stages_s,
            kernels=self._pipeline.kernels(),
            expert_cache=self._pipeline.expert_cache(),
            step_s=self._pipeline.computing_s(self._limits.max_rows),
            sequences=states,
        )

    def blocks(self) -> Blocks:
        """Return the state of every KV block."""
        return Blocks(self._pager.blocks())

    def reset_counters(self) -> None:
        self._counters = Counters()

    def close(self) -> None:
        self._grammars.shut_down()
        self._pipeline.close()
