"""Which tokens the rows of a step may draw: what grammars allow, of what requests allow at all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from llmd.engine.grammars import Grammars
from llmd.grammar.masks import Masks
from llmd.sampling.sampler import Sampler
from llmd.scheduler.sequence import Sequence as Running

_ANY = 0xFFFFFFFF
"""What a sequence may draw that has ended since the step was submitted: nobody reads it."""


def masked_rows(sequences: Sequence[Running], sampler: Sampler, grammars: Grammars) -> list[bool]:
    """Which of the rows that sequences draw from need a mask; nothing where none does."""
    masked = [sampler.restricts(one.request_id) or grammars.binds(one.request_id) for one in sequences]
    return masked if any(masked) else []


class RowMasks:
    """The masks of a step. Those of grammars are filled by their process, while the device works."""

    def __init__(
        self, sequences: Sequence[Running], masked: Sequence[bool], sampler: Sampler, grammars: Grammars
    ) -> None:
        """``sequences`` are those that the step draws for, in its order, and ``masked`` says whose rows need a mask."""
        self._masked = masked
        self._allowed = [sampler.allowed(one.request_id) for one in sequences]
        self._grammars = grammars
        self._pending = grammars.fill(sequences)

    def filled(self) -> Masks:
        """Wait for the masks uint32 ``[masked rows, ceil(vocab / 32)]``; requests whose grammar gives none have failed."""
        by_grammar = iter(() if self._pending is None else self._grammars.filled(self._pending))
        bound = self._pending.masked if self._pending else [False] * len(self._allowed)
        parts = [
            [mask for mask in (next(by_grammar) if binds else None, allowed) if mask is not None]
            for binds, allowed in zip(bound, self._allowed, strict=True)
        ]
        masks = np.full((sum(self._masked), self._grammars.mask_words), _ANY, np.uint32)
        for mask, part in zip(masks, compress(parts, self._masked), strict=True):
            np.bitwise_and.reduce([mask, *part], out=mask)
        return masks

    def refuse_empty(self, best: NDArray[np.float32]) -> None:
        """Fail the requests that forbid all that their grammar allows.

        ``best`` is the largest edited logit of each output row: minus infinity where no token may be drawn.
        """
        if self._pending is not None:
            self._grammars.refuse_empty(self._pending, best)
