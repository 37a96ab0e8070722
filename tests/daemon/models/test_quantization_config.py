from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import UnsupportedModelError
from llmd.models.quantization_config import check_quantization
from tests.golden.models.fp8 import BLOCKS, POWERS_OF_TWO, compressed

FILE = Path("model/config.json")


def group_with(**fields: Any) -> dict[str, Any]:
    """A configuration of compressed-tensors with other fields for its weights."""
    config = compressed("channel")
    group = config["config_groups"]["group_0"]
    return config | {"config_groups": {"group_0": group | {"weights": group["weights"] | fields}}}


def nvfp4_with(**fields: Any) -> dict[str, Any]:
    """A configuration of NVFP4 as llm-compressor writes it, with other fields for its weights."""
    weights = {"type": "float", "num_bits": 4, "group_size": 16, "strategy": "tensor_group"}
    group = {"targets": ["Linear"], "weights": weights | fields}
    format_ = "nvfp4-pack-quantized"
    return {"quant_method": "compressed-tensors", "format": format_, "config_groups": {"group_0": group}}


@pytest.mark.parametrize(
    "quantization",
    [
        None,
        {"quant_method": "mxfp4"},
        BLOCKS,
        POWERS_OF_TWO,
        POWERS_OF_TWO | {"expert_dtype": "fp4"},
        {"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None},
        {"quant_method": "modelopt", "quant_algo": "FP8"},
        {"quant_method": "modelopt", "quant_algo": "NVFP4"},
        nvfp4_with(),
        compressed("tensor"),
        compressed("channel"),
        compressed("channel") | {"format": "naive-quantized"},
        group_with(strategy="block", block_structure=[128, 128]),
    ],
)
def test_what_llmd_reads_passes(quantization: Any) -> None:
    check_quantization({"quantization_config": quantization}, FILE)
    check_quantization({}, FILE)


@pytest.mark.parametrize(
    ("quantization", "problem"),
    [
        ({"quant_method": "gptq"}, "gptq"),
        ({}, "unnamed method"),
        (
            {"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"},
            "modelopt with quant_algo W4A8_AWQ; llmd reads FP8, NVFP4",
        ),
        (BLOCKS | {"fmt": "e5m2"}, "fp8 with fmt e5m2; llmd reads e4m3"),
        (
            BLOCKS | {"weight_block_size": [64, 128]},
            r"weight_block_size \[64, 128\]; llmd reads \[128, 128\]",
        ),
        (BLOCKS | {"scale_fmt": "ue4m3"}, "fp8 with scale_fmt ue4m3; llmd reads float, ue8m0"),
        (
            POWERS_OF_TWO | {"weight_block_size": [32, 32]},
            r"weight_block_size \[32, 32\]; llmd reads \[128, 128\]",
        ),
        (POWERS_OF_TWO | {"expert_dtype": "int4"}, "fp8 with expert_dtype int4; llmd reads fp4, fp8"),
        (compressed("channel") | {"format": "pack-quantized"}, "format pack-quantized; llmd reads float-"),
        (compressed("channel") | {"transform_config": {"a": 1}}, "with transform_config"),
        (nvfp4_with(group_size=32), "with nvfp4-pack-quantized and weights .*'group_size': 32"),
        (group_with(num_bits=4), "weights of type float and 4 bits"),
        (group_with(type="int"), "weights of type int and 8 bits"),
        (group_with(strategy="group"), "strategy group and block_structure None"),
        (group_with(strategy="block", block_structure=[128, 64]), r"block_structure \[128, 64\]"),
    ],
)
def test_anything_else_is_refused_by_name(quantization: Any, problem: str) -> None:
    with pytest.raises(UnsupportedModelError, match=problem) as raised:
        check_quantization({"quantization_config": quantization}, FILE)
    assert str(FILE) in raised.value.message
    assert "use the unquantised model" in raised.value.hint


def test_a_format_may_be_stated_for_each_group() -> None:
    config = compressed("channel")
    group = config["config_groups"]["group_0"]
    for stated, reads in (("float-quantized", True), ("mxfp4-pack-quantized", False)):
        groups = {"group_0": group | {"format": stated}}
        mixed = config | {"format": "mixed-precision", "config_groups": groups}
        if reads:
            check_quantization({"quantization_config": mixed}, FILE)
        else:
            with pytest.raises(UnsupportedModelError, match=stated):
                check_quantization({"quantization_config": mixed}, FILE)


@pytest.mark.parametrize("dtype", ["fp4", "fp8", None])
def test_the_dtype_of_experts_may_stand_beside_the_quantisation(dtype: str | None) -> None:
    check_quantization({"quantization_config": POWERS_OF_TWO, "expert_dtype": dtype}, FILE)
    check_quantization({"expert_dtype": "bf16"}, FILE)
    with pytest.raises(UnsupportedModelError, match="fp8 with expert_dtype nvfp4; llmd reads fp4, fp8"):
        check_quantization({"quantization_config": POWERS_OF_TWO, "expert_dtype": "nvfp4"}, FILE)
