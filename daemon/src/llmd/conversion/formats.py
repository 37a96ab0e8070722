"""Choose the format of each tensor of a converted model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from llmd.api.errors import ConfigError
from llmd.api.expert_ops import Router
from llmd.api.stream_ops import StreamWeights
from llmd.api.tensors import PLAIN_FORMATS, SCALED_FORMATS, Format, Weight
from llmd.conversion.tensor_map import MappedTensor
from llmd.conversion.tensor_reader import TensorReader
from llmd.models.checkpoint import Checkpoint
from llmd.models.formats.gguf_quantization import BLOCK_LEN, QUANTIZERS
from llmd.models.weight_formats import NEAREST, QUANTIZED_OPS

READ_BY_ROW: Format = "q8_0"
"""Format of the embedding and the head if matrices are quantised, because their errors affect every token."""
UNFIT: Format = "f16"
"""Format of matrices whose rows are not whole blocks, or whose format GGUF files do not have."""
EXACT_OPS = ({Router.kind}, {StreamWeights.kind})
"""Kinds of the only op that uses a matrix which GGUF files have as f32."""
TABLE_OF_GGUF, TABLE_OF_DIRECTORY = "i32", "i64"
"""Formats of tables of integers: llama.cpp needs the first, and transformers has the second."""


TensorMap = Mapping[str, MappedTensor]
"""The tensors of the target by name."""


class Formats(msgspec.Struct, frozen=True):
    """The formats of a converted model."""

    by_name: Mapping[str, Format]
    """By the tensor names of the target."""
    notices: tuple[str, ...] = ()
    """Sentences about changes that the user did not request."""


def is_small(tensor: MappedTensor) -> bool:
    """Whether a tensor is no matrix, or only that of a router or of streams: GGUF files have it as f32."""
    return not tensor.ref.is_matrix or tensor.ref.whole_shape[-2] == 1 or tensor.ops in EXACT_OPS


def _apart(tensor_map: TensorMap) -> tuple[TensorMap, TensorMap]:
    """Return the tensors that are weights, and the tables of integers."""
    weights = {name: tensor for name, tensor in tensor_map.items() if tensor.ref.integers_below is None}
    return weights, {name: tensor for name, tensor in tensor_map.items() if name not in weights}


def _with_tables(of_weights: Formats, tables: Mapping[str, Format]) -> Formats:
    return Formats({**of_weights.by_name, **tables}, of_weights.notices)


def stored_formats(checkpoint: Checkpoint, tensor: MappedTensor) -> list[Format]:
    """Return the format of each part of a tensor in the source."""
    return [checkpoint.tensors[part.source.name].format or "" for part in tensor.parts]


def main_format(checkpoint: Checkpoint, tensor_map: TensorMap) -> Format:
    """Return the format of most bytes of the matrices."""
    counts: Counter[Format] = Counter()
    for tensor in tensor_map.values():
        for part, stored in zip(tensor.parts, stored_formats(checkpoint, tensor), strict=True):
            counts[stored] += 0 if is_small(tensor) else Weight(part.source, stored).num_bytes
    return counts.most_common(1)[0][0]


def formats_of_directory(
    checkpoint: Checkpoint,
    tensor_map: TensorMap,
    quant: Format | None,
    *,
    narrows: bool,
    kept: Format | None = None,
) -> Formats:
    """Choose formats for safetensors: plain ones, and ``kept`` where the source has it.

    Other blocks become f16 unless ``quant`` says otherwise.

    With ``narrows``, vectors and routers get the format of the matrices if this loses nothing. GGUF files
    store them as f32, whatever they were before. Tables of integers stay as they are, but become i64 with
    ``narrows``.

    Raises:
        ConfigError: ``quant`` is not a plain format.
    """
    weights, tables = _apart(tensor_map)
    of_weights = _weights_of_directory(checkpoint, weights, quant, narrows=narrows, kept=kept)
    return _with_tables(
        of_weights,
        {
            name: TABLE_OF_DIRECTORY if narrows else _stored_integers(checkpoint, table)
            for name, table in tables.items()
        },
    )


def _stored_integers(checkpoint: Checkpoint, table: MappedTensor) -> Format:
    """Return the format of integers in the source."""
    return checkpoint.tensors[table.parts[0].source.name].dtype.lower()


def _weights_of_directory(
    checkpoint: Checkpoint,
    tensor_map: TensorMap,
    quant: Format | None,
    *,
    narrows: bool,
    kept: Format | None,
) -> Formats:
    """Choose the formats of tensors that are no tables of integers: see `formats_of_directory`."""
    if quant is not None:
        _check_plain(quant)
        return Formats(dict.fromkeys(tensor_map, quant))
    stored = {name: stored_formats(checkpoint, tensor) for name, tensor in tensor_map.items()}
    stays = {name: kept for name, formats in stored.items() if kept is not None and {*formats} == {kept}}
    others = {name: tensor for name, tensor in tensor_map.items() if name not in stays}
    main = main_format(checkpoint, others)
    plain = main if main in PLAIN_FORMATS else NEAREST[main][0]
    reader = TensorReader(checkpoint, tensor_map, {})

    def format_of(name: str, tensor: MappedTensor) -> Format:
        formats = {*stored[name]}
        if len(formats) > 1 or not formats <= {*PLAIN_FORMATS}:
            return plain
        return plain if narrows and is_small(tensor) and reader.fits(name, plain) else formats.pop()

    by_name = {name: stays.get(name) or format_of(name, tensor) for name, tensor in tensor_map.items()}
    if plain == main:
        return Formats(by_name)
    return Formats(by_name, (_not_held("directory", main, plain),))


def _not_held(target: str, stored: Format, written: Format) -> str:
    return (
        f"weights are stored as {stored}, which a {target} cannot hold: they become {written}, "
        "which takes more space"
    )


def _check_plain(quant: Format) -> None:
    if quant not in PLAIN_FORMATS:
        raise ConfigError(
            f"--quant {quant}: a directory holds only plain weights, {', '.join(PLAIN_FORMATS)}",
            hint="for a quantised file give a TARGET that ends in .gguf; llmd also quantises while it loads: "
            "`llmd serve MODEL --quant q4`",
        )


def formats_of_gguf(checkpoint: Checkpoint, tensor_map: TensorMap, quant: Format | None) -> Formats:
    """Choose formats for GGUF: matrices keep theirs or become ``quant``; llama.cpp needs vectors in f32, and
    tables of integers in i32.

    Raises:
        ConfigError: llmd does not write ``quant``, or the matrices are quantised already.
    """
    weights, tables = _apart(tensor_map)
    return _with_tables(_weights_of_gguf(checkpoint, weights, quant), dict.fromkeys(tables, TABLE_OF_GGUF))


def _weights_of_gguf(checkpoint: Checkpoint, tensor_map: TensorMap, quant: Format | None) -> Formats:
    """Choose the formats of tensors that are no tables of integers: see `formats_of_gguf`."""
    known = (*PLAIN_FORMATS, *QUANTIZERS)
    if quant is not None and quant not in known:
        raise ConfigError(
            f"--quant {quant}: llmd does not write weights in this format",
            hint=f"choose one of {', '.join(known)}; for K-quants, write f16 or bf16 and run llama-quantize",
        )
    main = main_format(checkpoint, tensor_map)
    if quant in QUANTIZERS and main not in (*PLAIN_FORMATS, *SCALED_FORMATS):
        raise ConfigError(
            f"--quant {quant}: the weights of {checkpoint.file} are quantised already, as {main}",
            hint="convert the model from a plain format: the errors of both would add up",
        )
    unfit: list[str] = []

    def format_of(name: str, tensor: MappedTensor) -> Format:
        if is_small(tensor):
            return "f32"
        if quant is None:
            stored = {*stored_formats(checkpoint, tensor)}
            return stored.pop() if len(stored) == 1 and not stored & {*SCALED_FORMATS} else UNFIT
        if quant in PLAIN_FORMATS:
            return quant
        if tensor.ref.whole_shape[-1] % BLOCK_LEN:
            unfit.append(name)
            return UNFIT
        return quant if tensor.ops <= QUANTIZED_OPS - {"head"} else READ_BY_ROW

    by_name = {name: format_of(name, tensor) for name, tensor in tensor_map.items()}
    if main in SCALED_FORMATS and quant is None:
        return Formats(by_name, (_not_held("GGUF file", main, UNFIT),))
    if not unfit:
        return Formats(by_name)
    notice = (
        f"{len(unfit)} matrices are written as {UNFIT}, because their rows are not whole blocks of {BLOCK_LEN}: "
        f"{unfit[0]}, for example"
    )
    return Formats(by_name, (notice,))
