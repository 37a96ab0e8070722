"""Elementwise activations."""

from __future__ import annotations

from typing import Literal, get_args

Activation = Literal["silu", "gelu", "gelu_tanh", "relu2", "relu", "tanh", "quick_gelu"]
"""``gelu`` is exact (erf), ``gelu_tanh`` its tanh approximation, ``quick_gelu`` ``z * sigmoid(1.702 z)``."""

ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)
"""All values of `Activation`; the index is the code in `llmd.api.encoding`."""
