"""The format of each tensor of a converted model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from llmd.api.errors import ConfigError
from llmd.api.tensors import PLAIN_FORMATS, Format
from llmd.conversion.tensor_map import MappedTensor
from llmd.conversion.tensor_reader import TensorReader
from llmd.models.checkpoint import Checkpoint
from llmd.models.formats.gguf_quantization import BLOCK_LEN, QUANTIZERS
from llmd.models.weight_formats import NEAREST, QUANTIZED_OPS

READ_BY_ROW: Format = "q8_0"
"""What embedding and head get where matrices become blocks: errors there reach every token."""
UNFIT: Format = "f16"
"""What matrices get whose rows are no whole blocks."""


class Formats(msgspec.Struct, frozen=True):
    """Formats by the names of the target; ``notices`` are sentences about what nobody asked for."""

    by_name: Mapping[str, Format]
    notices: tuple[str, ...] = ()


def main_format(checkpoint: Checkpoint, tensor_map: Mapping[str, MappedTensor]) -> Format:
    """The format that most bytes of the matrices have."""
    counts: Counter[Format] = Counter()
    for move in tensor_map.values():
        tensor = checkpoint.tensors[move.ref.name]
        counts[tensor.format or ""] += tensor.size_bytes * (len(tensor.shape) > 1)
    return counts.most_common(1)[0][0]


def formats_of_directory(
    checkpoint: Checkpoint, tensor_map: Mapping[str, MappedTensor], quant: Format | None, *, narrows: bool
) -> Formats:
    """Formats in safetensors: plain ones. Blocks become f16 unless ``quant`` says otherwise.

    ``narrows``: what is no matrix takes the format of the matrices where it loses nothing by that. GGUF files have it in f32,
    whatever it was.

    Raises:
        ConfigError: a directory holds no such format.
    """
    if quant is not None:
        if quant not in PLAIN_FORMATS:
            raise ConfigError(
                f"--quant {quant}: a directory holds plain weights, {', '.join(PLAIN_FORMATS)}",
                hint="for a quantised file give a TARGET that ends in .gguf; llmd also quantises while it loads: `llmd serve MODEL --quant q4`",
            )
        return Formats(dict.fromkeys(tensor_map, quant))
    main = main_format(checkpoint, tensor_map)
    plain = main if main in PLAIN_FORMATS else NEAREST[main][0]
    reader = TensorReader(checkpoint, tensor_map, dict.fromkeys(tensor_map, "f32"))

    def format_of(name: str, move: MappedTensor) -> Format:
        stored = checkpoint.tensors[move.ref.name].format or ""
        if stored not in PLAIN_FORMATS:
            return plain
        is_vector = len(move.ref.shape) < 2
        return plain if narrows and is_vector and reader.fits(name, plain) else stored

    by_name = {name: format_of(name, move) for name, move in tensor_map.items()}
    if plain == main:
        return Formats(by_name)
    notice = f"weights are stored as {main}, which a directory does not hold: they become {plain}, which takes more room"
    return Formats(by_name, (notice,))


def formats_of_gguf(
    checkpoint: Checkpoint, tensor_map: Mapping[str, MappedTensor], quant: Format | None
) -> Formats:
    """Formats in a GGUF file: matrices stay as they are stored, or become ``quant``; all else is f32, as llama.cpp asks for it.

    Raises:
        ConfigError: matrices are not quantised to that here, or are quantised already.
    """
    known = (*PLAIN_FORMATS, *QUANTIZERS)
    if quant is not None and quant not in known:
        raise ConfigError(
            f"--quant {quant}: weights are not written as that",
            hint=f"choose one of {', '.join(known)}; for K-quants, write f16 or bf16 and run llama-quantize of llama.cpp",
        )
    main = main_format(checkpoint, tensor_map)
    if quant in QUANTIZERS and main not in PLAIN_FORMATS:
        raise ConfigError(
            f"--quant {quant}: the weights of {checkpoint.file} are quantised already, as {main}",
            hint="convert the model in a plain format: errors of both would add up",
        )
    unfit: list[str] = []

    def format_of(name: str, move: MappedTensor) -> Format:
        if len(move.ref.shape) < 2:
            return "f32"
        if quant is None:
            return checkpoint.tensors[move.ref.name].format or ""
        if quant in PLAIN_FORMATS:
            return quant
        if move.ref.shape[-1] % BLOCK_LEN:
            unfit.append(name)
            return UNFIT
        return quant if move.ops <= QUANTIZED_OPS - {"head"} else READ_BY_ROW

    by_name = {name: format_of(name, move) for name, move in tensor_map.items()}
    if not unfit:
        return Formats(by_name)
    notice = f"{len(unfit)} matrices stay {UNFIT}, since their rows are no whole blocks of {BLOCK_LEN}: {unfit[0]}, for example"
    return Formats(by_name, (notice,))
