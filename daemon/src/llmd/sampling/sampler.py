"""Sampling for all requests of an engine: parameters, edits, state, and the tokens of each step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from llmd.api.draws import GREEDY, HOST, NUM_COLUMNS, SAMPLED, CommonRows, Draws
from llmd.api.philox import uniforms
from llmd.api.random import Purpose
from llmd.api.results import Logprobs
from llmd.api.samplers import SamplingParams
from llmd.api.step import StepResult
from llmd.sampling import mirostat, sampler_chain
from llmd.sampling.allowed import Mask, pack
from llmd.sampling.common import CommonChain, common_chain
from llmd.sampling.edit_table import NO_EDITS, Edits
from llmd.sampling.edits import LogitEdits
from llmd.sampling.shortlist import Moments, of_candidates, of_row

FetchRow = Callable[[int], NDArray[np.float32]]
"""Returns all edited logits float32 ``[vocab]`` of an output row."""

_GREEDY, _COMMON, _OTHER = range(3)
_DEVICE_KINDS = np.array([GREEDY, SAMPLED, HOST], np.int8)
_NEUTRAL = CommonChain(1.0, 1.0).columns()
_MIN_SLOTS = 16
_REMOVED = 0
"""Slot of requests that were removed while a step with them was in flight: greedy, and the token is not
used."""


class DrawnTokens(Struct, frozen=True):
    """The tokens of a step."""

    tokens: list[int]
    """By output row."""
    limits: Mapping[int, float] = {}
    """Mirostat's state after the token, by request."""
    logprobs: Mapping[int, Logprobs] = {}
    """Logprobs after sampling, by row, for requests of `sampler_chain.wants_final_logprobs`. Rows without a
    random draw have none: use `sampler_chain.certain`."""


class PreparedDraws(Struct, frozen=True):
    """The draws of a step, prepared before the device returns its results."""

    request_ids: Sequence[int]
    positions: Sequence[int]
    common: NDArray[np.intp]
    """Rows with the common chain, which are drawn together."""
    rows: CommonRows | None
    """The parameters of ``common``; None if it is empty."""
    others: NDArray[np.intp]
    """Rows that are drawn one by one. All other rows are greedy."""


class _Request(Struct):
    params: SamplingParams
    slot: int
    edits: LogitEdits | None
    limit: float | None
    allowed: Mask | None


class Sampler:
    """Samples for each request. Used by the loop thread only.

    The state of a request consists of its tokens and mirostat's number: a replay draws the same tokens, in
    any batch. Parameters are in arrays by slot, so that a step reads those of all its rows at once.

    Candidates are the K best tokens of a row. A draw is decided from them if possible. Only a draw (or
    nucleus) that extends beyond their probability mass fetches the whole row, so that K never changes a
    distribution.
    """

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        self._requests: dict[int, _Request] = {}
        self._edited: set[int] = set()
        self._restricted: set[int] = set()
        self._steered: set[int] = set()
        self._free = list(range(1, _MIN_SLOTS))
        self._kind = np.zeros(_MIN_SLOTS, np.int8)
        self._table = np.zeros((_MIN_SLOTS, NUM_COLUMNS), np.float64)
        self._temperature = np.ones(_MIN_SLOTS, np.float32)
        self._random = np.zeros((_MIN_SLOTS, 2), np.uint64)

    def add(
        self,
        request_id: int,
        params: SamplingParams,
        prompt: Sequence[int],
        output: Sequence[int] = (),
        state: bytes = b"",
    ) -> None:
        """Add a request, with its output so far and the state that was sent with the last token."""
        slot = self._take_slot()
        common = None if sampler_chain.wants_final_logprobs(params) else common_chain(params)
        self._kind[slot] = (
            _GREEDY if sampler_chain.is_greedy(params) else _OTHER if common is None else _COMMON
        )
        self._table[slot] = _NEUTRAL if common is None else common.columns()
        self._temperature[slot] = sampler_chain.selection_temperature(params)
        self._random[slot, 0], self._random[slot, 1] = params.seed, params.choice
        edits = LogitEdits(params, prompt, output) if LogitEdits.wanted(params) else None
        limit = None if params.mirostat is None else mirostat.unpack(params.mirostat, state)
        mask = pack(params.allowed_ids, self._vocab_size) if params.allowed_ids else None
        self._keep(request_id, _Request(params, slot, edits, limit, mask))

    def fork(self, parent_id: int, child_id: int) -> None:
        """Add a request that continues from the present state of another."""
        parent, slot = self._requests[parent_id], self._take_slot()
        for values in (self._kind, self._table, self._temperature, self._random):
            values[slot] = values[parent.slot]
        edits = None if parent.edits is None else parent.edits.fork()
        self._keep(child_id, structs.replace(parent, slot=slot, edits=edits))

    def remove(self, request_id: int) -> None:
        """Remove a request; unknown ids are ignored."""
        if request := self._requests.pop(request_id, None):
            self._free.append(request.slot)
            self._edited.discard(request_id)
            self._restricted.discard(request_id)
            self._steered.discard(request_id)

    def edits_logits(self, request_id: int) -> bool:
        """Return whether the request edits logits, which may then depend on the previous tokens."""
        return request_id in self._edited

    def restricts(self, request_id: int) -> bool:
        """Return whether the request allows only some tokens."""
        return request_id in self._restricted

    def allowed(self, request_id: int) -> Mask | None:
        """Return the mask of the tokens that a request allows; None if it allows all."""
        return self._requests[request_id].allowed if self.restricts(request_id) else None

    def is_common(self, request_id: int) -> bool:
        """Return whether a device can draw the tokens: greedy ones, or samples of the common chain."""
        request = self._requests.get(request_id)
        return request is None or self._kind[request.slot] != _OTHER

    def draws(
        self, request_ids: Sequence[int], positions: NDArray[np.int32], described: NDArray[np.bool_]
    ) -> Draws:
        """Return how a device draws tokens at positions int32 ``[N]``; rows of other chains are the host's.

        ``described`` bool ``[N]``: rows of which more is needed than their token.
        """
        slots = self._slots(request_ids)
        kinds = _DEVICE_KINDS[self._kind[slots]]
        random = self._random[slots]
        return Draws(
            kinds=kinds,
            table=self._table[slots],
            seeds=np.ascontiguousarray(random[:, 0]),
            positions=positions.astype(np.uint64),
            choices=np.ascontiguousarray(random[:, 1]),
            token_only=(kinds != HOST) & ~described,
        )

    def temperatures(self, request_ids: Iterable[int]) -> NDArray[np.float32]:
        """Return the temperatures float32 ``[N]`` for the selection of a step."""
        return self._temperature[self._slots(request_ids)]

    def edits(
        self,
        request_ids: Sequence[int],
        assumed: Sequence[Sequence[int]] = (),
        *,
        late: Sequence[int] = (),
    ) -> list[Edits]:
        """Return the edits of each row for the selection of a step; empty if no row has edits.

        ``assumed`` are for each row tokens that it assumes after those of the request; empty: none. Requests
        of ``late`` have no edits yet.
        """
        if self._edited.isdisjoint(request_ids):
            return []
        if assumed:
            return [self._edits_after(one, tokens) for one, tokens in zip(request_ids, assumed, strict=True)]
        known = self._edited.difference(late) if late else self._edited
        found = [self._requests[i].edits if i in known else None for i in request_ids]
        return [NO_EDITS if edits is None else edits.row() for edits in found]

    def _edits_after(self, request_id: int, tokens: Sequence[int]) -> Edits:
        edits = self._requests[request_id].edits if request_id in self._edited else None
        if edits is None:
            return NO_EDITS
        if tokens:
            edits = edits.fork()
            for token in tokens:
                edits.append(token)
        return edits.row()

    def prepare(
        self, request_ids: Sequence[int], positions: Sequence[int], greedy: NDArray[np.bool_] | None = None
    ) -> PreparedDraws:
        """Prepare draws for requests at positions; rows of ``greedy`` take the best token."""
        slots = self._slots(request_ids)
        kinds = self._kind[slots]
        if greedy is not None:
            kinds[greedy] = _GREEDY
        common = np.flatnonzero(kinds == _COMMON)
        others = np.flatnonzero(kinds == _OTHER)
        if not common.size:
            return PreparedDraws(request_ids, positions, common, None, others)
        slots = slots[common]
        random = self._random[slots]
        u = uniforms(random[:, 0], np.array(positions, np.uint64)[common], random[:, 1], Purpose.SAMPLE)
        return PreparedDraws(request_ids, positions, common, CommonRows(self._table[slots], u), others)

    def draw(self, prepared: PreparedDraws, result: StepResult, fetch_row: FetchRow) -> DrawnTokens:
        """Draw a token for each output row, or take the device's. Requests do not change until `accept`.

        A row without finite logits has no distribution: it takes the best token, as greedy rows do.
        """
        best, by_device = result.ids[:, 0], None
        if result.tokens is not None:
            by_device = result.tokens >= 0
            best = np.where(by_device, result.tokens, best)
        tokens = best.tolist()
        if prepared.rows is None and not prepared.others.size:
            return DrawnTokens(tokens)
        greedy = ~np.isfinite(result.edited_logsumexp)
        if by_device is not None:
            greedy |= by_device
        if greedy.any():
            prepared = self.prepare(prepared.request_ids, prepared.positions, greedy)
        limits: dict[int, float] = {}
        logprobs: dict[int, Logprobs] = {}
        self._draw_common(prepared, result, tokens, fetch_row)
        for row in prepared.others.tolist():
            request_id = prepared.request_ids[row]
            drawn = self._draw_row(
                self._requests[request_id], prepared.positions[row], row, result, fetch_row
            )
            tokens[row] = drawn.token
            if drawn.limit is not None:
                limits[request_id] = drawn.limit
            if drawn.logprobs is not None:
                logprobs[row] = drawn.logprobs
        return DrawnTokens(tokens, limits, logprobs)

    def accept(self, request_id: int, row: int, draws: DrawnTokens) -> None:
        """Append the token that a row of a step drew."""
        self.append(request_id, draws.tokens[row])
        if request_id in draws.limits:
            self._requests[request_id].limit = draws.limits[request_id]

    def append(self, request_id: int, token: int) -> None:
        """Append a token that was chosen elsewhere."""
        if request_id in self._edited:
            edits = self._requests[request_id].edits
            assert edits is not None, "a request that edits has edits"
            edits.append(token)

    def state(self, request_id: int) -> bytes:
        """Return the state to send with the last token."""
        limit = self._requests[request_id].limit if request_id in self._steered else None
        return b"" if limit is None else mirostat.pack(limit)

    def _draw_common(
        self, prepared: PreparedDraws, result: StepResult, tokens: list[int], fetch_row: FetchRow
    ) -> None:
        """Draw the rows of the common chain into ``tokens``."""
        if prepared.rows is None:
            return
        rows, count = prepared.common, result.edited.shape[1]
        everything = rows.size == len(tokens)
        edited = result.edited if everything else result.edited[rows]
        index = prepared.rows.draw(
            edited, result.edited_logsumexp if everything else result.edited_logsumexp[rows]
        )
        drawn = result.ids[rows, np.minimum(index, count - 1)].tolist()
        if everything:
            tokens[:] = drawn
        else:
            for row, token in zip(rows.tolist(), drawn, strict=True):
                tokens[row] = token
        for place in np.flatnonzero(index == count).tolist():
            row = int(rows[place])
            tokens[row] = prepared.rows.draw_whole(place, fetch_row(row))

    def _draw_row(
        self, request: _Request, position: int, row: int, result: StepResult, fetch_row: FetchRow
    ) -> sampler_chain.SampledToken:
        context = sampler_chain.RowContext(
            position,
            self._vocab_size,
            sampler_chain.selection_temperature(request.params),
            float(result.edited_logsumexp[row]),
            request.limit,
            Moments(
                int(result.num_allowed[row]),
                float(result.edited_deviation[row]),
                float(result.edited_entropy[row]),
            ),
        )
        drawn = sampler_chain.draw(
            of_candidates(result.ids[row], result.edited[row]), request.params, context
        )
        if drawn is None:
            drawn = sampler_chain.draw(of_row(fetch_row(row)), request.params, context)
        assert drawn is not None, "the whole row always determines the draw"
        return drawn

    def _slots(self, request_ids: Iterable[int]) -> NDArray[np.intp]:
        get = self._requests.get
        found = [get(request_id) for request_id in request_ids]
        return np.array([_REMOVED if request is None else request.slot for request in found], np.intp)

    def _keep(self, request_id: int, request: _Request) -> None:
        self._requests[request_id] = request
        if request.edits is not None:
            self._edited.add(request_id)
        if request.limit is not None:
            self._steered.add(request_id)
        if request.allowed is not None:
            self._restricted.add(request_id)

    def _take_slot(self) -> int:
        if not self._free:
            self._grow()
        return self._free.pop()

    def _grow(self) -> None:
        """Double the number of slots."""
        count = len(self._kind)
        self._free += range(count, 2 * count)
        self._kind = np.concatenate((self._kind, np.zeros_like(self._kind)))
        self._table = np.concatenate((self._table, np.zeros_like(self._table)))
        self._temperature = np.concatenate((self._temperature, np.ones_like(self._temperature)))
        self._random = np.concatenate((self._random, np.zeros_like(self._random)))
