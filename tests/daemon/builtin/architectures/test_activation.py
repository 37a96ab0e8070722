from __future__ import annotations

import pytest

from llmd.api import UnsupportedModelError
from llmd.builtin.architectures.activation import read_activation
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
