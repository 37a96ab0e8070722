"""The tokens of a row that are still in play, as far as they are known.

A device returns the K best tokens of a row and the log-sum-exp of all. Whatever can be decided with these is decided with
them; what cannot is decided with the whole row, so that K never changes a distribution.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
MAX_EXPONENT = 700.0
"""The exponential of more overflows; no row is that much heavier than its best token."""

LEAST_REST = 0.01
"""Of a log-sum-exp in float32, no smaller share than this can be told apart exactly enough."""


class Moments(Struct, frozen=True):
    """What is known of a whole row beside its best tokens: how many tokens are allowed, the standard deviation of their
    logits, and the entropy of their distribution in nats, None where it is not known at this temperature.
    """

    count: int
    deviation: float
    entropy: float | None = None


class Shortlist(Struct, frozen=True):
    """Tokens in play, best first, equal ones by id.

    ``ids`` int32 and ``logits`` float64 ``[L]``, none of them -inf; ``logits`` are edited, and divided by every temperature
    that was applied. ``ends``: these are all. Else worse tokens follow, and ``logsumexp`` is over those, too; it is None
    where it is not known. ``moments`` are there while every allowed token of the row is in play.
    """

    ids: NDArray[np.int32]
    logits: Float64
    ends: bool
    logsumexp: float | None = None
    moments: Moments | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def probabilities(self) -> Float64 | None:
        """The probability of each listed token; None where it depends on what is not known."""
        if not self.ends and self.logsumexp is None:
            return None
        weights: Float64 = np.exp(self.logits - self.logits[0])
        total = float(np.cumsum(weights)[-1])
        if not self.ends and self.logsumexp is not None:
            # Rounded to float32, the log-sum-exp may be too small even for what is listed.
            total = max(total, math.exp(min(self.logsumexp - float(self.logits[0]), MAX_EXPONENT)))
        return weights / total

    def surprises(self) -> Float64 | None:
        """-ln of the probability of each listed token, finite also where that is 0 in float64; None where it is not known.

        By the log-sum-exp wherever that is known, so that a longer list gives the same.
        """
        shifted = self.logits - self.logits[0]
        if self.logsumexp is not None:
            surprises: Float64 = (self.logsumexp - float(self.logits[0])) - shifted
            return surprises
        return np.log(np.sum(np.exp(shifted))) - shifted if self.ends else None

    def entropy(self) -> float | None:
        """The entropy of all tokens in play, in nats; None where it is not known."""
        if self.moments is not None and self.moments.entropy is not None:
            return self.moments.entropy
        surprises = self.surprises()
        return float(np.sum(np.exp(-surprises) * surprises)) if self.ends and surprises is not None else None

    def deviation(self) -> float | None:
        """The standard deviation of the logits of all tokens in play; None where it is not known."""
        if self.moments is not None:
            return self.moments.deviation
        return float(np.std(self.logits)) if self.ends else None

    def count(self) -> int | None:
        """How many tokens are in play; None where that is not known."""
        return self.moments.count if self.moments is not None else len(self) if self.ends else None

    def first(self, count: int) -> Shortlist:
        """The best ``count`` tokens alone."""
        return Shortlist(self.ids[:count], self.logits[:count], ends=True)

    def pick(self, chosen: NDArray[np.intp]) -> Shortlist:
        """The tokens at these ascending indices alone."""
        return Shortlist(self.ids[chosen], self.logits[chosen], ends=True)

    def without_first(self, count: int) -> Shortlist | None:
        """All but the best ``count`` tokens; None where what is left is not known well enough."""
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
        """At a temperature; ``logsumexp`` is that over all tokens in play then, if it is known."""
        known = self.moments
        moments = None if known is None else Moments(known.count, known.deviation / temperature)
        return Shortlist(self.ids, self.logits / temperature, self.ends, logsumexp, moments)


def of_candidates(ids: NDArray[np.int32], edited: NDArray[np.float32]) -> Shortlist:
    """A device's candidates. Forbidden ones among them mean that no token follows."""
    count = int(np.count_nonzero(edited > -np.inf))
    return Shortlist(ids[:count], edited[:count].astype(np.float64), ends=count < len(ids))


def of_row(row: NDArray[np.float32]) -> Shortlist:
    """All tokens of a row of edited logits float32 ``[vocab]`` that are not forbidden."""
    # One sort of integers is many times faster than a stable sort of floats: the complement of an order-preserving
    # image of the logit above, the id below. Adding zero makes -0.0 equal to 0.0.
    bits = (row + np.float32(0.0)).view(np.uint32)
    descending = np.where(bits >> 31, bits, bits ^ np.uint32(0x7FFFFFFF))
    keys = (descending.astype(np.uint64) << np.uint64(32)) | np.arange(len(row), dtype=np.uint64)
    keys.sort()
    ids = (keys & np.uint64(0xFFFFFFFF)).astype(np.int32)
    logits = row[ids]
    count = int(np.count_nonzero(logits > -np.inf))
    return Shortlist(ids[:count], logits[:count].astype(np.float64), ends=True)
