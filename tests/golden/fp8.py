"""Weights of tiny models in FP8, as DeepSeek's checkpoints store them: numbers and scales in two tensors.

Sources: Micikevicius et al. 2022, "FP8 Formats for Deep Learning" (arXiv:2209.05433), for the numbers. Names,
and shapes of blocks, are those of the published checkpoints of DeepSeek-V3, DeepSeek-V4 and Qwen3, of
llm-compressor, and of ModelOpt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.golden.compressed_tensors import DEEPSEEK_V4, published_form
from tests.golden.weights import E8M0, from_bf16, random_words, to_bf16

Stored = NDArray[np.generic]

MAGNITUDES = np.array(
    [2.0**-9 * fraction for fraction in range(8)]
    + [2.0 ** (exponent - 7) * (1 + fraction / 8) for exponent in range(1, 16) for fraction in range(8)][:-1]
)
"""The numbers of the codes 0 to 126; bit 7 is the sign, and 127 is not a number."""
ENDS = ("_scale_inv", "_scale")
"""What follows the name of a weight in that of its scales."""

INDEX_MATRICES = ("wq_b", "wk")
"""The matrices of an indexer that are in FP8 too; that of the weights of heads is not."""


def is_fp8(config: Mapping[str, Any], name: str) -> bool:
    """Whether a tensor is in FP8: the projections in layers, if the configuration says so."""
    if config["model_type"] == DEEPSEEK_V4:
        return published_form(config, name) == "fp8"
    fields = config.get("quantization_config", {})
    says = (fields.get("quant_method"), fields.get("format"), fields.get("quant_algo"))
    has_numbers = "fp8" in says or "float-quantized" in says or "FP8" in says
    return has_numbers and is_quantised(config, name)


def is_quantised(config: Mapping[str, Any], name: str) -> bool:
    """Whether a tensor is the matrix of a projection in a layer that the configuration does not leave out."""
    module = name.removesuffix(".weight")
    fields = config["quantization_config"]
    patterns = fields.get("modules_to_not_convert") or fields.get("ignore") or ()
    left_out = any(fnmatchcase(module, pattern) for pattern in patterns)
    owner = module.rpartition(".")[2]
    is_matrix = owner in INDEX_MATRICES or ("proj" in owner and owner != "weights_proj")
    return ".layers." in name and is_matrix and name != module and not left_out


def fp8_tensors(
    config: Mapping[str, Any], seed: int, name: str, values: NDArray[np.float32]
) -> Iterator[tuple[str, Stored]]:
    """The codes of a weight, int8 with the bits of numbers, and its scales.

    Weights get about the given values times a factor of 0.5 to 2 for each scale, so that each of them counts.
    About one of a hundred codes is subnormal.
    """
    typical = np.float32(np.std(values))
    rows, cols = values.shape
    shape = _scales_shape(config, rows, cols)
    words = random_words(seed, f"{name}{ENDS[0]}", shape[0] * shape[1]).reshape(shape)
    if config["quantization_config"].get("scale_fmt") == "ue8m0":
        exponent = round(np.log2(typical))
        yield name, _codes(values / np.float32(2.0**exponent))
        powers = powers_of_two(exponent, words)
        if config["model_type"] == DEEPSEEK_V4:
            yield scale_name(name), powers
        else:
            yield name + ENDS[0], np.ldexp(np.float32(1), powers.view(np.uint8).astype(np.int32) - 127)
        return
    factors = np.exp2((words % np.uint64(256)).astype(np.float32) / 128 - 1).astype(np.float32)
    yield name, _codes(values / typical)
    scales = factors * typical
    if config["model_type"] == DEEPSEEK_V4:
        yield scale_name(name), scales
    elif _method(config) == "fp8":
        yield name + ENDS[0], scales
    elif _method(config) == "modelopt":
        yield name + ENDS[1], scales.reshape(())
        yield f"{name.removesuffix('weight')}input_scale", np.array(0.01, np.float32)
    else:
        yield name + ENDS[1], to_bf16(scales if shape[0] > 1 else scales.reshape(1))


def scale_name(name: str) -> str:
    """What DeepSeek-V4 calls the scales of a weight."""
    return f"{name.removesuffix('weight')}scale"


def powers_of_two(exponent: int, words: NDArray[np.uint64]) -> Stored:
    """Scales of half, once and twice ``2 ** exponent``, as `E8M0`."""
    return (exponent + 126 + words % np.uint64(3)).astype(np.uint8).view(E8M0)


def with_fp8_as_numbers(tensors: Mapping[str, Stored]) -> dict[str, Stored]:
    """Replace codes and scales by the float32 numbers that they mean."""
    found: dict[str, Stored] = {}
    for name, tensor in tensors.items():
        scales = next((tensors[name + end] for end in ENDS if name + end in tensors), None)
        if scales is not None:
            found[name] = fp8_numbers(tensor, scales)
        elif not name.endswith(ENDS):
            found[name] = tensor
    return found


def fp8_numbers(codes: Stored, scales: Stored) -> NDArray[np.float32]:
    """What a weight ``[rows, cols]`` means: each product is rounded to float32."""
    bits = codes.view(np.uint8)
    numbers = np.where(bits < 128, 1, -1) * MAGNITUDES[bits & 127]
    is_bf16 = scales.dtype == np.uint16
    of_blocks = from_bf16(scales.view(np.uint16)) if is_bf16 else scales.astype(np.float32)
    of_blocks = of_blocks if of_blocks.ndim == 2 else of_blocks.reshape(1, 1)
    rows, cols = (_block_of(*sizes) for sizes in zip(bits.shape, of_blocks.shape, strict=True))
    product: NDArray[np.float32] = numbers.astype(np.float32) * of_blocks[np.ix_(rows, cols)]
    return product


def _block_of(count: int, scales: int) -> NDArray[np.intp]:
    """Which scale along an axis each of ``count`` elements has: its own, one for 128, or the only one."""
    places = np.arange(count)
    return places if scales == count else places // 128 if scales > 1 else 0 * places


def _codes(values: NDArray[np.float32]) -> NDArray[np.int8]:
    middles = (MAGNITUDES[1:] + MAGNITUDES[:-1]) / 2
    codes = np.searchsorted(middles, np.abs(values)).astype(np.uint8)
    return (codes | (np.signbit(values).astype(np.uint8) << 7)).view(np.int8)


def _scales_shape(config: Mapping[str, Any], rows: int, cols: int) -> tuple[int, int]:
    if _method(config) == "fp8":
        return -(-rows // 128), -(-cols // 128)
    if _method(config) == "modelopt":
        return 1, 1
    (group,) = config["quantization_config"]["config_groups"].values()
    return (rows if group["weights"]["strategy"] == "channel" else 1), 1


def _method(config: Mapping[str, Any]) -> str | None:
    method: str | None = config.get("quantization_config", {}).get("quant_method")
    return method
