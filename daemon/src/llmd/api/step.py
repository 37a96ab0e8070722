"""One step: a ragged batch in arrays, which rows need output, and what comes back.

All arrays are C-contiguous and belong to the caller, who leaves them unchanged until the ticket is released.
"""

from __future__ import annotations

from typing import NewType

import msgspec
import numpy as np
from numpy.typing import NDArray

Int32 = NDArray[np.int32]
Float32 = NDArray[np.float32]

BLOCK_LEN = 16
"""Tokens in a KV block."""

NUM_CANDIDATES = 64
"""Candidates per output row, unless a stage was made for more."""

MAX_RAW_TOP = 20
"""Most raw logits per row that `Selection.raw_top` may ask for."""

Ticket = NewType("Ticket", int)
"""Names one submitted step of one stage until it is released."""


class Step(msgspec.Struct, frozen=True):
    """A ragged batch of ``S`` sequences with ``R`` rows in all, prefill and decode mixed.

    ``token_ids``: int32 ``[R]``. A negative entry ``-1 - i`` means "the token that the device chose for output
    row ``i`` of the ticket ``feed``" (its best edited candidate), so that a step can be queued before the
    host has seen that token.
    ``positions``: int32 ``[R]``, consecutive within a sequence.
    ``row_offsets``: int32 ``[S + 1]``; sequence ``s`` owns rows ``row_offsets[s] .. row_offsets[s + 1]``.
    ``block_tables``: one int32 ``[S, width]`` for each KV group of the plan; entry ``[s, p // BLOCK_LEN]`` is
    the block of position ``p``. Entries that no row of this step reads or writes are -1.
    ``copies``: int32 ``[C, 3]`` of (group, source block, target block), done in order before the layers.
    ``token_types``: int32 ``[R]``, which of the joined texts each row is of; None means 0 everywhere.
    """

    token_ids: Int32
    positions: Int32
    row_offsets: Int32
    block_tables: tuple[Int32, ...]
    copies: Int32
    feed: Ticket | None = None
    token_types: Int32 | None = None

    @property
    def num_rows(self) -> int:
        """R, the rows of the step."""
        return int(self.token_ids.shape[0])

    @property
    def num_sequences(self) -> int:
        """S, the sequences of the step."""
        return int(self.row_offsets.shape[0]) - 1


class Selection(msgspec.Struct, frozen=True):
    """The ``N`` rows of a step that need output, and what each needs.

    ``rows``: int32 ``[N]``, row numbers of the step, ascending; a row may come several times (forks draw from it).
    ``edit_offsets`` int32 ``[N + 1]``, ``edit_ids`` int32 ``[E]``, ``edit_factors`` and ``edit_biases`` float32
    ``[E]``: sparse edits of row ``n`` are entries ``edit_offsets[n] .. edit_offsets[n + 1]``, ids distinct.
    A logit z becomes ``z / factor`` if z > 0 else ``z * factor``, then ``+ bias``.
    ``masked``: bool ``[N]``; such rows have no result until `Stage.apply_masks`.
    ``temperatures``: float32 ``[N]``, > 0; of ``edited_logsumexp`` and ``edited_entropy`` alone (greedy rows pass 1).
    ``targets``: int32 ``[N]``; the raw logit of that id is returned, -1 for none.
    ``raw_top``: how many of the largest *raw* logits are returned for every row, 0 to `MAX_RAW_TOP`.
    """

    rows: Int32
    edit_offsets: Int32
    edit_ids: Int32
    edit_factors: Float32
    edit_biases: Float32
    masked: NDArray[np.bool_]
    temperatures: Float32
    targets: Int32
    raw_top: int = 0

    @property
    def num_rows(self) -> int:
        """N, the rows that need output."""
        return int(self.rows.shape[0])


class StepResult(msgspec.Struct, frozen=True):
    """Candidates of the ``N`` selected rows; ``K = min(candidates of the stage, vocabulary)``.

    ``ids`` int32 ``[N, K]`` by (edited logit descending, id ascending); ``edited`` and ``raw`` float32 ``[N, K]``.
    ``raw_logsumexp`` float32 ``[N]`` over the unedited logits of the vocabulary; ``edited_logsumexp``
    float32 ``[N]`` over ``edited / temperature`` (masked-out ids excluded). ``edited_entropy`` float32 ``[N]`` is that of
    the softmax of ``edited / temperature``, in nats. ``edited_deviation`` float32 ``[N]`` is the standard deviation of the
    edited logits that are not -inf, of which there are ``num_allowed`` int32 ``[N]``; both are 0 where there are none, and
    so is the entropy. ``target_raw`` float32 ``[N]``, NaN where no target was named. ``top_ids`` and ``top_raw`` ``[N, raw_top]`` by (raw descending, id ascending).
    The arrays belong to the stage and are valid until the ticket is released.
    """

    ids: Int32
    edited: Float32
    raw: Float32
    raw_logsumexp: Float32
    edited_logsumexp: Float32
    edited_entropy: Float32
    edited_deviation: Float32
    num_allowed: Int32
    target_raw: Float32
    top_ids: Int32
    top_raw: Float32
