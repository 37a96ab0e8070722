"""The best remaining tokens of a row, while samplers narrow it.

A device returns the K best tokens of a row and the log-sum-exp of all tokens. If these cannot decide a draw,
the whole row does, so that K never changes a distribution.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from llmd.api.draws import MAX_EXPONENT, Float64, best_first

LEAST_REST = 0.01
"""A smaller rest of a float32 log-sum-exp cannot be computed accurately enough."""


class Moments(Struct, frozen=True):
    """Statistics of all allowed tokens of a row."""

    count: int
    """Number of allowed tokens."""
    deviation: float
    """Standard deviation of their logits."""
    entropy: float | None = None
    """Entropy of their distribution in nats; None: unknown at this temperature."""


class Shortlist(Struct, frozen=True):
    """The best of the remaining tokens, best first; equal ones are in order of id."""

    ids: NDArray[np.int32]
    """``[L]``."""
    logits: Float64
    """``[L]``, never -inf: edited, and divided by all temperatures applied so far."""
    ends: bool
    """The list has all remaining tokens; else worse ones follow."""
    logsumexp: float | None = None
    """Over all remaining tokens, listed or not; None: unknown."""
    moments: Moments | None = None
    """Set as long as no allowed token of the row has been removed."""

    def __len__(self) -> int:
        return len(self.ids)

    def probabilities(self) -> Float64 | None:
        """Return the probability of each listed token; None if it depends on unknown tokens."""
        if not self.ends and self.logsumexp is None:
            return None
        weights: Float64 = np.exp(self.logits - self.logits[0])
        total = float(np.cumsum(weights)[-1])
        if not self.ends and self.logsumexp is not None:
            # Rounded to float32, the log-sum-exp may be less than that of the listed tokens.
            total = max(total, math.exp(min(self.logsumexp - float(self.logits[0]), MAX_EXPONENT)))
        return weights / total

    def surprises(self) -> Float64 | None:
        """Return -ln of the probability of each listed token; None if unknown.

        It is finite even if the probability is 0 in float64. The log-sum-exp is used whenever it is known, so
        that a longer list gives the same result.
        """
        shifted = self.logits - self.logits[0]
        if self.logsumexp is not None:
            surprises: Float64 = (self.logsumexp - float(self.logits[0])) - shifted
            return surprises
        return np.log(np.sum(np.exp(shifted))) - shifted if self.ends else None

    def entropy(self) -> float | None:
        """Return the entropy of all remaining tokens, in nats; None if unknown."""
        if self.moments is not None and self.moments.entropy is not None:
            return self.moments.entropy
        surprises = self.surprises()
        return float(np.sum(np.exp(-surprises) * surprises)) if self.ends and surprises is not None else None

    def deviation(self) -> float | None:
        """Return the standard deviation of the logits of all remaining tokens; None if unknown."""
        if self.moments is not None:
            return self.moments.deviation
        return float(np.std(self.logits)) if self.ends else None

    def count(self) -> int | None:
        """Return the number of remaining tokens; None if unknown."""
        return self.moments.count if self.moments is not None else len(self) if self.ends else None

    def first(self, count: int) -> Shortlist:
        """Keep only the best ``count`` tokens."""
        return Shortlist(self.ids[:count], self.logits[:count], ends=True)

    def pick(self, chosen: NDArray[np.intp]) -> Shortlist:
        """Keep only the tokens at these ascending indices."""
        return Shortlist(self.ids[chosen], self.logits[chosen], ends=True)

    def without_first(self, count: int) -> Shortlist | None:
        """Remove the best ``count`` tokens; return None if the rest is not known accurately enough."""
        ids, logits = self.ids[count:], self.logits[count:]
        if self.ends:
            return Shortlist(ids, logits, ends=True)
        shares = self.probabilities()
        if shares is None or self.logsumexp is None:
            return None
        rest = 1.0 - float(np.cumsum(shares[:count])[-1])
        if rest < LEAST_REST:
            return None
        return Shortlist(ids, logits, ends=False, logsumexp=self.logsumexp + float(np.log(rest)))

    def divided(self, temperature: float, logsumexp: float | None) -> Shortlist:
        """Divide the logits by a temperature; ``logsumexp``: the new one over all remaining tokens."""
        known = self.moments
        moments = None if known is None else Moments(known.count, known.deviation / temperature)
        return Shortlist(self.ids, self.logits / temperature, self.ends, logsumexp, moments)


def of_candidates(ids: NDArray[np.int32], edited: NDArray[np.float32]) -> Shortlist:
    """Return the list of a device's candidates. If some of them are forbidden, no other token is allowed."""
    count = int(np.count_nonzero(edited > -np.inf))
    return Shortlist(ids[:count], edited[:count].astype(np.float64), ends=count < len(ids))


def of_row(row: NDArray[np.float32]) -> Shortlist:
    """Return all tokens of a row of edited logits float32 ``[vocab]`` that are not forbidden."""
    ids = best_first(row)
    logits = row[ids]
    count = int(np.count_nonzero(logits > -np.inf))
    return Shortlist(ids[:count], logits[:count].astype(np.float64), ends=True)
