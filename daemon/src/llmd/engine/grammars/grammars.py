"""The grammars of running requests: compiled outside the loop, with masks filled while the device works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import GrammarError, LlmdError
from llmd.api.messages import PackedVocabulary, Submit, Vocabulary
from llmd.engine.grammars.messages import BoundRow, Compile, Forget, Fork, mask_words
from llmd.engine.grammars.process import GrammarProcess
from llmd.grammar.masks import Masks
from llmd.scheduler.sequence import Sequence as Running


class _Bound(msgspec.Struct):
    """A sequence with a grammar."""

    sequence: Running
    min_tokens: int
    num_seen: int
    """Number of the sequence's tokens that its matcher has seen, including the prompt."""


class PendingMasks(msgspec.Struct, frozen=True):
    """Masks that are being filled."""

    masked: list[bool]
    """Whether each output row gets a mask."""
    sequences: list[Running]
    """Sequence of each row with a mask."""
    assumes: list[bool]
    """Whether each row with a mask assumes proposals."""


class Grammars:
    """The grammars of one engine core. Only the engine loop's thread uses it.

    A separate process compiles them and fills masks. There, a matcher follows the tokens of each request and
    survives preemption. After a resubmission, a new matcher is fed the output so far.
    """

    def __init__(self, vocab_size: int, max_rows: int) -> None:
        """``max_rows`` is the most rows that a step samples from."""
        self._vocab_size = vocab_size
        self.mask_words = mask_words(vocab_size)
        self._max_rows = max_rows
        self._end_ids: tuple[int, ...] = ()
        self._process: GrammarProcess | None = None
        self._waiting: dict[int, _Bound] = {}
        self._bound: dict[int, _Bound] = {}
        self._failed: dict[int, LlmdError] = {}

    @property
    def pending(self) -> bool:
        """Whether a request waits for its grammar, or has a failure that was not reported yet."""
        return bool(self._waiting or self._failed)

    @property
    def waiting(self) -> list[Running]:
        """The requests whose grammars are being compiled."""
        return [bound.sequence for bound in self._waiting.values()]

    def set_vocabulary(self, vocabulary: Vocabulary | PackedVocabulary) -> None:
        """Set the vocabulary that grammars are compiled for. Call it once."""
        self._end_ids = vocabulary.end_ids
        self._process = GrammarProcess(vocabulary, self._vocab_size, self._max_rows)

    def open(self, submit: Submit, arrival: int) -> None:
        """Start to compile the grammar of a request, which waits until that is done.

        Raises:
            GrammarError: no vocabulary was set, or no token can end the answer.
        """
        stop = submit.stop
        if self._process is None:
            raise GrammarError("the engine knows no vocabulary", hint="send it before the first grammar")
        # The masks allow stop ids when the grammar is complete,
        # regardless of ``ignore_eos`` and ``min_tokens``.
        stop_ids = stop.stop_ids or self._end_ids
        if not stop_ids:
            raise GrammarError(
                "the model has no token that ends an answer", hint="name one as stop_token_ids"
            )
        stop = msgspec.structs.replace(stop, stop_ids=stop_ids, min_tokens=0)
        sequence = Running.of(msgspec.structs.replace(submit, stop=stop), arrival)
        assert submit.grammar is not None
        self._process.tell(Compile(submit.request_id, submit.grammar, submit.output))
        self._waiting[submit.request_id] = _Bound(sequence, submit.stop.min_tokens, len(sequence.tokens))

    def fork(self, parent_id: int, child: Running) -> None:
        """Give a forked sequence its parent's grammar state, if the parent has one.
        No mask of the parent is pending.
        """
        if (bound := self._bound.get(parent_id)) is not None:
            self._told.tell(Fork(parent_id, child.request_id))
            self._bound[child.request_id] = msgspec.structs.replace(bound, sequence=child)

    def close(self, request_id: int) -> None:
        """Forget a request; unknown ids are ignored."""
        self._failed.pop(request_id, None)
        self._forget(request_id)

    def shut_down(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.end()

    def compiled(self) -> Iterator[Running]:
        """Take the requests whose grammars are now compiled."""
        for told in self._told.compiled() if self._waiting else ():
            if (bound := self._waiting.pop(told.sequence_id, None)) is None:
                continue  # the request has ended
            self._bound[told.sequence_id] = bound
            if told.message:
                self._failed[told.sequence_id] = GrammarError(told.message, hint=told.hint)
            else:
                yield bound.sequence

    def failed(self) -> dict[int, LlmdError]:
        """Take the requests whose grammars cannot be followed, with the errors."""
        failed, self._failed = self._failed, {}
        for request_id in failed:
            self._forget(request_id)
        return failed

    def wait(self, timeout_s: float) -> None:
        """Wait until a grammar is compiled, for at most ``timeout_s`` seconds."""
        if self._waiting:
            self._told.wait(timeout_s)

    def binds(self, request_id: int) -> bool:
        return request_id in self._bound

    def fill(
        self, sequences: Sequence[Running], assumed: Sequence[tuple[int, ...]] = ()
    ) -> PendingMasks | None:
        """Start to fill the masks of the rows of sequences; None if none of them has a grammar.

        ``assumed`` are for each row the proposals that it assumes after the tokens of its sequence; empty:
        none.
        """
        masked = [one.request_id in self._bound for one in sequences]
        if not any(masked):
            return None
        bound = [one for one in sequences if one.request_id in self._bound]
        drafts = list(compress(assumed, masked)) or [()] * len(bound)
        self._told.fill([self._row(one, tokens) for one, tokens in zip(bound, drafts, strict=True)])
        return PendingMasks(masked, bound, [bool(tokens) for tokens in drafts])

    def filled(self, pending: PendingMasks) -> Masks:
        """Wait for masks, which are valid until the next `fill`.
        Requests without a mask are marked as failed.
        """
        masks, failed = self._told.filled(len(pending.sequences))
        for place, reason in failed.items():
            self._fail(pending.sequences[place].request_id, reason)
        return masks

    def refuse_empty(self, pending: PendingMasks, best: NDArray[np.float32]) -> None:
        """Fail the requests that forbid, for example by biases of -100,
        every token that their grammar allows.

        ``best`` is the largest edited logit of each output row: minus infinity if no token can be sampled.
        """
        rows = [row for row, masked in enumerate(pending.masked) if masked]
        for row, sequence, assumes in zip(rows, pending.sequences, pending.assumes, strict=True):
            if np.isneginf(best[row]) and not assumes:
                self._fail(sequence.request_id, "the request forbids every token that continues it")

    def has_failed(self, request_id: int) -> bool:
        return request_id in self._failed

    def failure(self, request_id: int) -> LlmdError | None:
        """Return why a grammar cannot be followed further; None after `failed` has returned it."""
        return self._failed.get(request_id)

    @property
    def _told(self) -> GrammarProcess:
        """The process, which exists once the vocabulary is set."""
        assert self._process is not None
        return self._process

    def _forget(self, request_id: int) -> None:
        if self._bound.pop(request_id, None) or self._waiting.pop(request_id, None):
            self._told.tell(Forget(request_id))

    def _row(self, sequence: Running, assumed: tuple[int, ...]) -> BoundRow:
        bound = self._bound[sequence.request_id]
        num_output = len(sequence.tokens) - sequence.prompt_len + len(assumed)
        longer, stop_ids = num_output < bound.min_tokens, sequence.stop.stop_ids
        if assumed:  # after the row of the sequence's own tokens
            return BoundRow(sequence.request_id, stop_ids, assumed, longer, is_draft=True)
        new, bound.num_seen = tuple(sequence.tokens[bound.num_seen :]), len(sequence.tokens)
        return BoundRow(sequence.request_id, stop_ids, new, longer)

    def _fail(self, request_id: int, reason: str) -> None:
        if request_id not in self._bound:
            return  # it ended while a step with it was in flight
        self._failed[request_id] = GrammarError(
            f"the grammar cannot be followed further: {reason}", hint="simplify the grammar"
        )
