"""Names of activations in ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping

from llmd.api.ops import Activation
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
    """The activation that the field ``name`` asks for; `UnsupportedModelError` where it is unknown."""
    return fields.choice(name, ACTIVATIONS, default)


def read_gate(fields: ConfigFields) -> tuple[Activation, float]:
    """Activation and threshold of a `Glu`: that of ``fatrelu`` is ``hidden_act_param``, which nothing else reads."""
    if fields.text("hidden_act", "silu") == "fatrelu":
        return "relu", fields.positive("hidden_act_param")
    return read_activation(fields), 0.0
