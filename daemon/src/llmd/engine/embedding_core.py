"""Body of the loop for an embedding model: pack texts into a step, run it, pool the hidden states."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.embedding import Pooling
from llmd.api.errors import MemoryBudgetError, RequestError
from llmd.api.messages import EmbedText
from llmd.api.plan import KVGroup
from llmd.api.reports import Blocks, Report, SequenceState
from llmd.api.results import Embedded, Failed, Started, TextVector
from llmd.engine.counters import Counters
from llmd.engine.failures import failure
from llmd.engine.limits import MAX_TEXTS, EmbeddingLimits
from llmd.engine.placement.kv_budget import KVBudget
from llmd.engine.pooling import Pool, open_pool
from llmd.engine.steps.batch import lay_out
from llmd.engine.steps.pipeline import Pipeline
from llmd.pager.pager import Pager


class _Text(msgspec.Struct):
    """A text that is waiting or running."""

    request_id: int
    tokens: tuple[int, ...]
    group: int
    second_at: int | None
    pool: Pool
    done: int = 0
    """Tokens that have been computed and pooled."""

    def token_types(self, count: int) -> NDArray[np.int32]:
        """Return the types of the next ``count`` tokens."""
        if self.second_at is None:
            return np.zeros(count, np.int32)
        places = np.arange(self.done, self.done + count)
        return (places >= self.second_at).astype(np.int32)


class EmbeddingCore:
    """Embeds texts with one model. Not thread-safe: one loop owns it.

    Groups take turns, and the texts of a group run in order of arrival: a query does not wait for thousands
    of documents.

    Only the last text of a step may continue in the next step, where it is first. Therefore at most one text
    holds blocks between steps, and the pool, which has room for any single text, always has room for it.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        groups: tuple[KVGroup, ...],
        budget: KVBudget,
        limits: EmbeddingLimits,
        poolings: Sequence[Pooling],
    ) -> None:
        self._pipeline = pipeline
        self._limits = limits
        self._poolings = tuple(poolings)
        self._kv_groups = groups
        self._pool_tokens = budget.max_tokens
        self._pager = self._new_pager(budget)
        self._texts: dict[int, _Text] = {}
        self._groups: dict[int, dict[int, _Text]] = {}  # in order of turns
        self._counters = Counters()

    @property
    def busy(self) -> bool:
        """Whether `step` has work to do."""
        return bool(self._texts)

    def submit(self, request: EmbedText) -> None:
        """Queue a text.

        Raises:
            RequestError: it has no tokens, too many tokens, or a token outside the vocabulary.
            MemoryBudgetError: it does not fit the whole KV pool.
        """
        self._check(request.tokens, request.second_at)
        if not self._texts:
            self._counters.begin()
        pool = open_pool(self._poolings)
        text = _Text(request.request_id, request.tokens, request.group, request.second_at, pool)
        self._texts[text.request_id] = text
        self._groups.setdefault(text.group, {})[text.request_id] = text

    def cancel(self, request_id: int) -> None:
        """Drop a text and free its blocks; unknown ids are ignored."""
        text = self._texts.pop(request_id, None)
        if text is not None:
            group = self._groups[text.group]
            del group[request_id]
            if not group:
                del self._groups[text.group]
        if self._pager.owns(request_id):
            self._pager.free(request_id)

    def step(self) -> Embedded:
        """Run a step; return the vectors of the texts that it finished.

        Raises:
            DeviceError: a device failed. All texts are in the state after the last successful step.
        """
        chunks = self._plan()
        if not chunks:
            return Embedded(())
        pieces = [(text.tokens[text.done : text.done + count], text.done, count) for text, count in chunks]
        step = lay_out(pieces, self._pager.tables([text.request_id for text, _ in chunks]))
        if any(text.second_at is not None for text, _ in chunks):
            types = np.concatenate([text.token_types(count) for text, count in chunks])
            step = msgspec.structs.replace(step, token_types=types)
        begun = [text.request_id for text, _ in chunks if not text.done]
        planned_at = time.perf_counter()
        try:
            with self._pipeline.submit(step, None) as tickets:
                hidden = tickets.hidden()
                for (text, count), first in zip(chunks, step.row_offsets.tolist(), strict=False):
                    text.pool.add(hidden[first : first + count])
        except BaseException:
            self._pager.rewind()
            raise
        self._counters.count_prefill(step.num_rows)
        running_s = time.perf_counter() - planned_at
        started = tuple(Started(request_id, 0, running_s) for request_id in begun)
        step_s = self._pipeline.new_computing_s(self._limits.max_rows)
        return Embedded(tuple(self._advance(chunks)), started, step_s)

    def rebuild(self, pipeline: Pipeline, budget: KVBudget) -> tuple[Failed, ...]:
        """Go on with another pipeline, after `step` has raised: texts that have begun begin again.

        Returns:
            The texts that have ended because the KV pool has become too small for them.
        """
        self._pipeline = pipeline
        self._pool_tokens = budget.max_tokens
        self._pager = self._new_pager(budget)
        failed = []
        for text in list(self._texts.values()):
            text.pool, text.done = open_pool(self._poolings), 0
            try:
                self._check_room(len(text.tokens))
            except MemoryBudgetError as error:
                failed.append(failure(text.request_id, error))
                self.cancel(text.request_id)
        return tuple(failed)

    def report(self, *, sequences: bool = False) -> Report:
        """Return the counters; with ``sequences``, also the state of each text."""
        total = sum(pool.num_blocks for pool in self._pager.pools)
        running = sum(self._pager.owns(request_id) for request_id in self._texts)
        return Report(
            steps=self._counters.steps,
            running=running,
            waiting=len(self._texts) - running,
            prompt_tokens=self._counters.prompt_tokens,
            cached_tokens=0,
            output_tokens=0,
            preemptions=0,
            prefill_s=self._counters.prefill_s,
            decode_s=0.0,
            kv_blocks_used=total - sum(pool.num_free for pool in self._pager.pools),
            kv_blocks_total=total,
            kernels=self._pipeline.kernels(),
            expert_cache=self._pipeline.expert_cache(),
            step_s=self._pipeline.computing_s(self._limits.max_rows),
            sequences=tuple(map(self._state, self._texts.values())) if sequences else None,
        )

    def _state(self, text: _Text) -> SequenceState:
        if not self._pager.owns(text.request_id):
            return SequenceState(text.request_id, "waiting", "earlier")
        blocks = self._pager.num_blocks(text.request_id)
        return SequenceState(text.request_id, "prefill", prompt_done=text.done, kv_blocks=blocks)

    def blocks(self) -> Blocks:
        """Return the state of every KV block."""
        return Blocks(self._pager.blocks())

    def reset_counters(self) -> None:
        self._counters = Counters()

    def close(self) -> None:
        """Do nothing: the pipeline holds all resources."""

    def _new_pager(self, budget: KVBudget) -> Pager:
        return Pager(
            self._kv_groups,
            budget.num_blocks,
            max_sequences=MAX_TEXTS,
            max_len=self._limits.context_len,
            chunk_len=self._limits.max_rows,
        )

    def _plan(self) -> list[tuple[_Text, int]]:
        """Choose the texts of the next step, each with a number of tokens, and reserve their blocks."""
        chunks: list[tuple[_Text, int]] = []
        room = self._limits.max_rows
        for text in self._in_turn():
            left = len(text.tokens) - text.done
            count = min(left, room)
            is_cut = self._limits.whole_texts and count < left
            if len(chunks) == MAX_TEXTS or not count or is_cut or not self._reserve(text, count):
                break
            chunks.append((text, count))
            room -= count
        return chunks

    def _in_turn(self) -> Iterator[_Text]:
        """Yield the texts in order: the one that has begun, then one of each group in turn, repeatedly."""
        firsts = (next(iter(group.values())) for group in self._groups.values())
        begun = next((text for text in firsts if text.done), None)
        if begun is not None:
            yield begun
        for turn in zip_longest(*(group.values() for group in self._groups.values())):
            yield from (text for text in turn if text is not None and text is not begun)

    def _reserve(self, text: _Text, count: int) -> bool:
        """Reserve the blocks of the next tokens; return False if there are too few for the whole text."""
        begins = not self._pager.owns(text.request_id)
        if begins and self._pager.open(text.request_id, text.tokens, None) is None:
            return False
        took = self._pager.prepare(text.request_id, count)
        assert took, "the blocks were free when the text was opened"
        return True

    def _advance(self, chunks: Sequence[tuple[_Text, int]]) -> list[TextVector]:
        """Record that a step is done; return the vectors of the finished texts."""
        vectors = []
        for text, count in chunks:
            self._groups[text.group] = self._groups.pop(text.group)  # to the end of the turns
            text.done += count
            self._pager.advance(text.request_id, count)
            if text.done == len(text.tokens):
                vector = text.pool.vector().astype("<f4").tobytes()
                vectors.append(TextVector(text.request_id, vector))
                self.cancel(text.request_id)
        return vectors

    def _check(self, tokens: Sequence[int], second_at: int | None) -> None:
        limits = self._limits
        if not tokens:
            raise RequestError("the text has no tokens", param="input", hint="send at least one token")
        if len(tokens) > limits.context_len:
            raise RequestError(
                f"{len(tokens)} tokens do not fit a context of {limits.context_len}",
                param="input",
                hint="shorten the text",
            )
        if min(tokens) < 0 or max(tokens) >= limits.vocab_size:
            raise RequestError(
                f"token ids reach {min(tokens)}..{max(tokens)}, the vocabulary has 0..{limits.vocab_size - 1}",
                param="input",
                hint="use the tokenizer of this model",
            )
        if second_at is not None and limits.num_token_types < 2:
            raise RequestError(
                "the tokens have two types, but the model does not distinguish types",
                param="input",
                hint="use the tokenizer that was published with the weights",
            )
        self._check_room(len(tokens))

    def _check_room(self, num_tokens: int) -> None:
        if not self._pager.fits_ever(num_tokens):
            raise MemoryBudgetError(
                f"the text has {num_tokens} tokens, the KV pool holds {self._pool_tokens}",
                hint="shorten the text, or serve with a larger --kv-memory",
            )
