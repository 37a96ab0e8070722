"""The grammars of running requests: compiled beside the loop, and their masks filled while the device works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import GrammarError, LlmdError
from llmd.api.messages import Submit, Vocabulary
from llmd.grammar.compiler import GrammarCompiler
from llmd.grammar.masks import MaskFiller, MaskRow, Masks
from llmd.grammar.matcher import Matcher
from llmd.scheduler.sequence import Sequence as Running

MASK_THREADS = 4


class _Bound(msgspec.Struct):
    """A request with a grammar; its matcher is ready once it may run."""

    sequence: Running
    min_tokens: int
    matcher: Future[Matcher]
    num_seen: int
    """Tokens of the sequence that the matcher has seen, with the prompt."""


class PendingMasks(msgspec.Struct, frozen=True):
    """Masks that are being filled for the rows of ``masked``."""

    masked: list[bool]
    filled: Future[tuple[Masks, dict[int, str]]]
    sequences: list[Running]


class Grammars:
    """What grammars keep for a core. Used by the loop's thread alone.

    One thread compiles, so that a long grammar holds up those that wait for theirs and nobody else; another fills masks.
    A request's matcher follows its tokens, and outlives preemptions; after a resubmission it is fed the output anew.
    """

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        self._end_ids: tuple[int, ...] = ()
        self._compiler: Future[GrammarCompiler] | None = None
        self._filler: MaskFiller | None = None
        self._compiling = ThreadPoolExecutor(1, "grammars")
        self._filling = ThreadPoolExecutor(1, "masks")
        self._waiting: dict[int, _Bound] = {}
        self._bound: dict[int, _Bound] = {}
        self._failed: dict[int, LlmdError] = {}

    @property
    def pending(self) -> bool:
        """Whether a request waits for its grammar, or has failed and nobody was told."""
        return bool(self._waiting or self._failed)

    def learn(self, vocabulary: Vocabulary) -> None:
        """Take the vocabulary that grammars are compiled for."""
        self._end_ids = vocabulary.end_ids
        self._filler = MaskFiller(self._vocab_size, MASK_THREADS)
        self._compiler = self._compiling.submit(GrammarCompiler, vocabulary, self._vocab_size)

    def open(self, submit: Submit, arrival: int) -> None:
        """Let a request wait for its grammar.

        Raises:
            GrammarError: no vocabulary is known, or nothing could end its answer.
        """
        stop = submit.stop
        if self._compiler is None:
            raise GrammarError("the engine knows no vocabulary", hint="send it before the first grammar")
        # The masks allow stop ids where the grammar is complete, whatever ``ignore_eos`` and ``min_tokens`` say.
        stop_ids = stop.stop_ids or self._end_ids
        if not stop_ids:
            raise GrammarError(
                "the model has no token that ends an answer", hint="name one as stop_token_ids"
            )
        stop = msgspec.structs.replace(stop, stop_ids=stop_ids, min_tokens=0)
        sequence = Running.of(msgspec.structs.replace(submit, stop=stop), arrival)
        matcher = self._compiling.submit(_compile, self._compiler, submit)
        self._waiting[submit.request_id] = _Bound(
            sequence, submit.stop.min_tokens, matcher, len(sequence.tokens)
        )

    def fork(self, parent_id: int, child: Running) -> None:
        """Bind a sequence that goes on from what another is now, if that is bound; no mask of it is being filled."""
        if (bound := self._bound.get(parent_id)) is not None:
            matcher: Future[Matcher] = Future()
            matcher.set_result(bound.matcher.result().fork())
            self._bound[child.request_id] = msgspec.structs.replace(bound, sequence=child, matcher=matcher)

    def close(self, request_id: int) -> None:
        """Forget a request; unknown ids are ignored."""
        self._bound.pop(request_id, None)
        self._failed.pop(request_id, None)
        if waiting := self._waiting.pop(request_id, None):
            waiting.matcher.cancel()

    def shut_down(self) -> None:
        """End the threads."""
        for pool in (self._compiling, self._filling):
            pool.shutdown(wait=False, cancel_futures=True)

    def compiled(self) -> Iterator[Running]:
        """Take the requests that may run now."""
        for request_id, bound in list(self._waiting.items()):
            if not bound.matcher.done():
                continue
            del self._waiting[request_id]
            if (error := bound.matcher.exception()) is None:
                self._bound[request_id] = bound
                yield bound.sequence
            elif isinstance(error, LlmdError):
                self._failed[request_id] = error
            else:
                raise error

    def failed(self) -> dict[int, LlmdError]:
        """Take the requests whose grammars cannot be followed, and why."""
        failed, self._failed = self._failed, {}
        for request_id in failed:
            self._bound.pop(request_id, None)
        return failed

    def wait(self, timeout_s: float) -> None:
        """Wait until some grammar is compiled, at most so long."""
        wait([bound.matcher for bound in self._waiting.values()], timeout_s, FIRST_COMPLETED)

    def binds(self, request_id: int) -> bool:
        return request_id in self._bound

    def fill(self, sequences: Sequence[Running]) -> PendingMasks | None:
        """Begin to fill the masks of the rows that sequences draw from; None where no grammar binds them."""
        masked = [one.request_id in self._bound for one in sequences]
        if not any(masked):
            return None
        assert self._filler is not None
        bound = [one for one in sequences if one.request_id in self._bound]
        rows = [self._row(one) for one in bound]
        return PendingMasks(masked, self._filling.submit(self._filler.fill, rows), bound)

    def filled(self, pending: PendingMasks) -> Masks:
        """Wait for masks; requests for which there is none have failed."""
        masks, failed = pending.filled.result()
        for place, reason in failed.items():
            self._fail(pending.sequences[place].request_id, reason)
        return masks

    def refuse_empty(self, pending: PendingMasks, best: NDArray[np.float32]) -> None:
        """Fail the requests that forbid, by biases of -100 and the like, all that their grammar allows.

        ``best`` is the largest edited logit of each output row: minus infinity where no token may be drawn.
        """
        rows = [row for row, masked in enumerate(pending.masked) if masked]
        for row, sequence in zip(rows, pending.sequences, strict=True):
            if np.isneginf(best[row]):
                self._fail(sequence.request_id, "the request forbids every token that continues it")

    def has_failed(self, request_id: int) -> bool:
        return request_id in self._failed

    def failure(self, request_id: int) -> LlmdError | None:
        """Why a grammar cannot be followed further, until `failed`."""
        return self._failed.get(request_id)

    def _row(self, sequence: Running) -> MaskRow:
        bound = self._bound[sequence.request_id]
        num_output = len(sequence.tokens) - sequence.prompt_len
        new, bound.num_seen = tuple(sequence.tokens[bound.num_seen :]), len(sequence.tokens)
        return MaskRow(bound.matcher.result(), sequence.stop.stop_ids, new, num_output < bound.min_tokens)

    def _fail(self, request_id: int, reason: str) -> None:
        if request_id not in self._bound:
            return  # it has ended while a step with it was on its way
        self._failed[request_id] = GrammarError(
            f"the grammar cannot be followed further: {reason}", hint="simplify the grammar"
        )


def _compile(compiler: Future[GrammarCompiler], submit: Submit) -> Matcher:
    """A matcher behind the output that a request already has."""
    assert submit.grammar is not None
    matcher = compiler.result().compile(submit.grammar)
    matcher.accept(submit.output)
    return matcher
