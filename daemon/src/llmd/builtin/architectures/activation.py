"""Names of activations in ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping

from llmd.api.activations import Activation
from llmd.builtin.architectures.config_fields import ConfigFields

ACTIVATIONS: Mapping[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
    "relu2": "relu2",
}


def read_activation(fields: ConfigFields, name: str = "hidden_act", default: str = "silu") -> Activation:
    """Return the activation in the field ``name``; raise `UnsupportedModelError` if it is unknown."""
    return fields.choice(name, ACTIVATIONS, default)


def read_gate(fields: ConfigFields) -> tuple[Activation, float]:
    """Return activation and threshold of a `Glu`. Only ``fatrelu`` has a threshold, ``hidden_act_param``."""
    if fields.text("hidden_act", "silu") == "fatrelu":
        return "relu", fields.positive("hidden_act_param")
    return read_activation(fields), 0.0
