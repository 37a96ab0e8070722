from __future__ import annotations

import pytest

from llmd.api import CheckpointError, UnsupportedModelError
from llmd.builtin.architectures.activation import read_activation, read_gate
from llmd.builtin.architectures.config_fields import ConfigFields


def test_names_of_one_function_mean_the_same() -> None:
    assert read_activation(ConfigFields({"hidden_act": "swish"})) == "silu"
    assert read_activation(ConfigFields({"hidden_act": "gelu_new"})) == "gelu_tanh"


def test_reads_the_field_that_the_family_names() -> None:
    fields = ConfigFields({"hidden_act": "silu", "hidden_activation": "gelu"})
    assert read_activation(fields, "hidden_activation", "gelu_pytorch_tanh") == "gelu"


def test_an_unknown_activation_is_unsupported() -> None:
    with pytest.raises(UnsupportedModelError, match="hidden_act is 'xielu'"):
        read_activation(ConfigFields({"hidden_act": "xielu"}))


def test_fatrelu_is_relu_with_a_threshold() -> None:
    assert read_gate(ConfigFields({"hidden_act": "fatrelu", "hidden_act_param": 0.01})) == ("relu", 0.01)


@pytest.mark.parametrize("name", ["relu", "silu"])
def test_nothing_else_has_a_threshold(name: str) -> None:
    assert read_gate(ConfigFields({"hidden_act": name, "hidden_act_param": 0.01})) == (name, 0.0)


def test_fatrelu_needs_its_threshold() -> None:
    with pytest.raises(CheckpointError, match="hidden_act_param is missing"):
        read_gate(ConfigFields({"hidden_act": "fatrelu"}))


def test_where_no_threshold_is_read_fatrelu_is_unsupported() -> None:
    with pytest.raises(UnsupportedModelError, match="hidden_act is 'fatrelu'"):
        read_activation(ConfigFields({"hidden_act": "fatrelu", "hidden_act_param": 0.01}))
