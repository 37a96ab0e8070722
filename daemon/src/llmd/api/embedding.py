"""How final hidden states become the embedding of a text."""

from __future__ import annotations

from typing import Literal

import msgspec

Pooling = Literal["cls", "max", "mean", "mean_sqrt_len", "weighted_mean", "last"]
"""How the rows ``h[1..n]`` of a text become one: the first row, the maximum of each column, the mean, the sum
over ``sqrt(n)``, the mean weighted by ``1..n``, the last row.
"""


ScoreFunction = Literal["sigmoid", "identity"]
"""Function from the output of a cross-encoder to the score of a pair of texts."""


class Embedding(msgspec.Struct, frozen=True):
    """The configuration of an embedding model, as its publishers state it."""

    poolings: tuple[Pooling, ...]
    """One or more; the results of several are concatenated."""
    normalizes: bool = True
    """Scale vectors to length 1."""
    max_len: int | None = None
    """Most tokens of a text; None: as many as the model can process."""
    lower_cases: bool = False
    """Convert texts to lower case first."""
    prompts: dict[str, str] = {}
    """Prefixes by name; each tells the model what a text is for."""
    default_prompt: str = ""
    """Prefix of the texts of a request that names no prompt."""
    nested: bool = False
    """A prefix of a vector is a valid vector, too (Kusupati et al. 2022, "Matryoshka Representation
    Learning")."""
    nested_dimensions: tuple[int, ...] = ()
    """Lengths that such prefixes may have; empty: any."""
    score: ScoreFunction | None = None
    """Set for a cross-encoder: it does not embed but runs in the same way, reading two texts as one and
    returning a single number."""
