"""One step: a ragged batch as arrays, the rows that need output, and the results.

All input arrays are C-contiguous. The caller owns them and must not change them until the ticket is released.
"""

from __future__ import annotations

from typing import NewType

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.draws import Draws

Int32 = NDArray[np.int32]
Float32 = NDArray[np.float32]

BLOCK_LEN = 16
"""Tokens in a KV block."""

NUM_CANDIDATES = 64
"""Default number of candidates per output row."""

MAX_RAW_TOP = 20
"""Largest allowed `Selection.raw_top`."""

Ticket = NewType("Ticket", int)
"""Identifies a submitted step of a stage until it is released."""


class Step(msgspec.Struct, frozen=True):
    """A ragged batch of ``S`` sequences with ``R`` rows in total, prefill and decode mixed."""

    token_ids: Int32
    """``[R]``. A negative entry ``-1 - i`` stands for the token of output row ``i`` of the ticket ``feed``,
    so that a step can be queued before the host has seen that token: the one that the device drew, or for a
    row that the host draws the best edited candidate."""
    positions: Int32
    """``[R]``, consecutive within a sequence."""
    row_offsets: Int32
    """``[S + 1]``; sequence ``s`` owns rows ``row_offsets[s] .. row_offsets[s + 1]``."""
    block_tables: tuple[Int32, ...]
    """One array ``[S, width]`` for each KV group of the plan; entry ``[s, p // block_tokens]`` is the block
    of position ``p`` (`KVGroup.block_tokens`: `BLOCK_LEN`, if vectors do not stand for more tokens). Entries
    that no row of this step reads or writes are -1.

    For a ``state`` group it is ``[S, 2]``: the slot of the state that the sequence starts from (-1 if and
    only if it starts at position 0: the state is zero) and the slot for its state after its last row. Both
    may be equal. No other sequence of the step uses the slot that a sequence writes."""
    copies: Int32
    """``[C, 3]``: (group, source, target), blocks or slots, copied in order before the layers run."""
    feed: Ticket | None = None
    """The ticket of the same stage that negative ``token_ids`` refer to; its edits and masks are applied. The
    stage has the embedding and the head: to the first of several stages, the host passes tokens on once they
    are drawn."""
    token_types: Int32 | None = None
    """``[R]``: index of the text that the row belongs to, if texts are joined; None: all 0."""
    adapters: Int32 | None = None
    """``[S]``: index of the adapter of each sequence, -1 for none; None: no sequence has one. Not read by a
    device without `llmd.api.features.ADAPTERS`, nor for programs without `llmd.api.adapter_ops.Adapt`."""

    @property
    def num_rows(self) -> int:
        """R, the number of rows."""
        return int(self.token_ids.shape[0])

    @property
    def num_sequences(self) -> int:
        """S, the number of sequences."""
        return int(self.row_offsets.shape[0]) - 1


class Selection(msgspec.Struct, frozen=True):
    """The ``N`` rows of a step that need output, with ``E`` edits of their logits.

    An edit turns a logit z into ``z / factor`` if z > 0, else ``z * factor``, and then adds the bias.
    """

    rows: Int32
    """``[N]``: row numbers of the step, ascending. A row may appear several times: forks draw from the same
    row."""
    edit_offsets: Int32
    """``[N + 1]``; the edits of output row ``n`` are entries ``edit_offsets[n] .. edit_offsets[n + 1]``."""
    edit_ids: Int32
    """``[E]``: token ids, distinct within a row."""
    edit_factors: Float32
    """``[E]``."""
    edit_biases: Float32
    """``[E]``."""
    masked: NDArray[np.bool_]
    """``[N]``; masked rows have no result until `Stage.apply_masks`."""
    temperatures: Float32
    """``[N]``, above 0; used for ``edited_logsumexp`` and ``edited_entropy`` only. Greedy rows pass 1."""
    targets: Int32
    """``[N]``: id whose raw logit is returned; -1: none."""
    raw_top: int = 0
    """Number of largest *raw* logits returned for each row, 0 to `MAX_RAW_TOP`."""
    draws: Draws | None = None
    """How the device draws tokens; None: the host draws all of them. Only for devices with `DRAWS`."""
    late: NDArray[np.bool_] | None = None
    """``[N]``; late rows have edits that are not known yet: they have no edits here, and no result until
    `Stage.apply_edits`. None: no row is late. Only for devices with `DRAWS`. A row may be late and masked."""

    @property
    def num_rows(self) -> int:
        """N, the number of output rows."""
        return int(self.rows.shape[0])


class LateEdits(msgspec.Struct, frozen=True):
    """The edits of the ``L`` late rows of a selection, in its order; ``E`` in total."""

    offsets: Int32
    """``[L + 1]``; the edits of late row ``l`` are entries ``offsets[l] .. offsets[l + 1]``."""
    ids: Int32
    """``[E]``: token ids, distinct within a row."""
    factors: Float32
    """``[E]``."""
    biases: Float32
    """``[E]``."""


class StepResult(msgspec.Struct, frozen=True):
    """Candidates of the ``N`` output rows; ``K = min(candidates of the stage, vocabulary)``.

    The arrays belong to the stage and are valid until the ticket is released.
    """

    ids: Int32
    """``[N, K]``, sorted by edited logit (descending), then id (ascending)."""
    edited: Float32
    """``[N, K]``: edited logits of ``ids``."""
    raw: Float32
    """``[N, K]``: raw logits of ``ids``."""
    raw_logsumexp: Float32
    """``[N]``: over the raw logits of the whole vocabulary."""
    edited_logsumexp: Float32
    """``[N]``: over ``edited / temperature`` of the whole vocabulary, without masked-out ids."""
    edited_entropy: Float32
    """``[N]``: entropy of the softmax of ``edited / temperature``, in nats; 0 if no id is allowed."""
    edited_deviation: Float32
    """``[N]``: standard deviation of the edited logits that are not -inf; 0 if there are none."""
    num_allowed: Int32
    """``[N]``: number of edited logits that are not -inf."""
    target_raw: Float32
    """``[N]``: raw logit of the target; NaN if the row has no target."""
    top_ids: Int32
    """``[N, raw_top]``, sorted by raw logit (descending), then id (ascending)."""
    top_raw: Float32
    """``[N, raw_top]``: raw logits of ``top_ids``."""
    tokens: Int32 | None = None
    """``[N]``: the token that the device drew for each row, -1 for rows that the host draws (see
    `llmd.api.draws`); None if the selection had no draws."""
