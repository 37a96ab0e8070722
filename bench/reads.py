"""The bytes of matrices that a step reads; with a mixture of experts they depend on its rows."""

from __future__ import annotations

from dataclasses import dataclass

from bench.shapes import Mixture
from llmd.api.expert_ops import used_share


@dataclass(frozen=True)
class Reads:
    """The matrices of one side."""

    dense: int
    """Bytes that every step reads."""
    experts: int = 0
    """Bytes of all experts."""
    mixture: Mixture | None = None
    """None: there are no experts."""

    def of(self, rows: int) -> float:
        """Return the expected bytes that a step of ``rows`` rows reads, if it chooses experts at random."""
        if self.mixture is None:
            return self.dense
        return self.dense + self.experts * used_share(self.mixture.experts, self.mixture.used, rows)
