"""Masks of the tokens that the rows of a step may draw, from grammars and from the requests themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from llmd.engine.grammars.grammars import Grammars
from llmd.grammar.masks import Masks
from llmd.sampling.sampler import Sampler
from llmd.scheduler.sequence import Sequence as Running

_ANY = 0xFFFFFFFF
"""Mask word that allows all tokens, for sequences that ended after the step was submitted: the result is
unused."""


def masked_rows(sequences: Sequence[Running], sampler: Sampler, grammars: Grammars) -> list[bool]:
    """Return for each sequence whether its row needs a mask; empty if no row needs one."""
    masked = [sampler.restricts(one.request_id) or grammars.binds(one.request_id) for one in sequences]
    return masked if any(masked) else []


class RowMasks:
    """The masks of a step. The grammar process fills those of grammars while the device works."""

    def __init__(
        self,
        sequences: Sequence[Running],
        masked: Sequence[bool],
        sampler: Sampler,
        grammars: Grammars,
        assumed: Sequence[tuple[int, ...]] = (),
    ) -> None:
        """``sequences`` are those that the step draws for, in order; ``masked`` is from `masked_rows`,
        ``assumed`` from `llmd.engine.steps.batch.assumed`.
        """
        self._masked = masked
        self._allowed = [sampler.allowed(one.request_id) for one in sequences]
        self._grammars = grammars
        self._pending = grammars.fill(sequences, assumed)

    def filled(self) -> Masks:
        """Wait for the masks uint32 ``[masked rows, ceil(vocab / 32)]``.

        Requests whose grammar returns no mask have failed (`Grammars.failed`).
        """
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
        """Fail the requests that forbid all tokens that their grammar allows.

        ``best`` is the largest edited logit of each output row: minus infinity if no token may be drawn.
        """
        if self._pending is not None:
            self._grammars.refuse_empty(self._pending, best)
