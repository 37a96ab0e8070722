"""Elementwise activations."""

from __future__ import annotations

from typing import Literal, get_args

Activation = Literal[
    "silu", "gelu", "gelu_tanh", "relu2", "relu", "tanh", "quick_gelu", "sigmoid", "identity"
]
"""``gelu`` is exact (erf), ``gelu_tanh`` its tanh approximation, ``quick_gelu`` ``z * sigmoid(1.702 z)``.
With ``identity``, a gated value is the product of both."""

ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)
"""All values of `Activation`; the index is the code in `llmd.api.encoding`."""
