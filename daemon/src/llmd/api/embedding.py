"""How final hidden states become the embedding of a text."""

from __future__ import annotations

from typing import Literal

import msgspec

Pooling = Literal["cls", "max", "mean", "mean_sqrt_len", "weighted_mean", "last"]
"""What is made of the rows ``h[1..n]`` of a text: the first, the largest of each column, their mean, their sum over
``sqrt(n)``, their mean with the weights ``1..n``, the last.
"""


ScoreFunction = Literal["sigmoid", "identity"]
"""What makes the score of a pair of texts of the number that a model leaves for it."""


class Embedding(msgspec.Struct, frozen=True):
    """What the makers of an embedding model say about it.

    ``poolings``: one, or several whose results follow one another. ``normalizes``: vectors have length 1. ``max_len`` is
    the most tokens of a text where that is less than the model could take. ``lower_cases``: texts are made lower case
    first. ``prompts`` say before a text what it is for, by names; ``default_prompt`` is the text of one that stands before
    every text of a request that names none.

    ``nested``: the first numbers of a vector are a vector, too (Kusupati et al. 2022, "Matryoshka Representation
    Learning"), at any length, or at those in ``nested_dimensions`` where there are some.

    A model with a ``score`` is none for embedding, but runs as one: it reads two texts as one and leaves a single number.
    """

    poolings: tuple[Pooling, ...]
    normalizes: bool = True
    max_len: int | None = None
    lower_cases: bool = False
    prompts: dict[str, str] = {}
    default_prompt: str = ""
    nested: bool = False
    nested_dimensions: tuple[int, ...] = ()
    score: ScoreFunction | None = None
