from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import CheckpointError
from llmd.models.config_form import ConfigForm
from llmd.models.json_file import converted

OF_EACH_TYPE: tuple[Any, ...] = (True, 7, 2.5, "x", [True], [[]], {"eos_token_id": "x", "activation_fn": 1})
FITTING: dict[str, tuple[Any, ...]] = {
    "architectures": (),
    "model_type": ("x",),
    "eos_token_id": (7,),
    "max_position_embeddings": (7,),
    "rope_parameters": OF_EACH_TYPE[-1:],
    "rope_scaling": OF_EACH_TYPE[-1:],
    "quantization_config": OF_EACH_TYPE[-1:],
    "text_config": (),
    "is_causal": (True,),
    "use_bidirectional_attention": (True, "x"),
    "is_matryoshka": (True,),
    "matryoshka_dimensions": (),
    "sentence_transformers": (),
    "sbert_ce_default_activation_function": ("x",),
}
"""Values that each field accepts."""


def test_every_field_may_be_absent_or_null() -> None:
    assert FITTING.keys() == set(ConfigForm.__struct_fields__)
    assert converted(dict.fromkeys(FITTING), ConfigForm, file="config.json") == ConfigForm()


def test_fields_as_models_have_them_are_taken() -> None:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "eos_token_id": [1, 2],
        "matryoshka_dimensions": [64, 128],
        "text_config": {"eos_token_id": 3, "hidden_size": 8},
        "sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity", "version": "5.0"},
        "hidden_size": True,  # architectures read and check this one
    }
    converted(config, ConfigForm, file="config.json")


@pytest.mark.parametrize("name", FITTING)
def test_a_field_of_another_type_is_named(name: str) -> None:
    fitting, refusals = [], []
    for value in OF_EACH_TYPE:
        try:
            converted({name: value}, ConfigForm, file="m/config.json")
            fitting.append(value)
        except CheckpointError as error:
            refusals.append(error)
    assert tuple(fitting) == FITTING[name]
    assert all(error.file == "m/config.json" and f"$.{name}" in error.message for error in refusals)


def test_a_token_id_below_0_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"eos_token_id"):
        converted({"eos_token_id": [2, -1]}, ConfigForm, file="config.json")
