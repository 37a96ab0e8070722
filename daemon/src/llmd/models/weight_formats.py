"""Choose the format of each weight from its stored format, the request, and the device's formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from llmd.api.device import DeviceInfo
from llmd.api.errors import ConfigError, PluginError
from llmd.api.integer_formats import INTEGER_FORMATS, OWN_FORMATS
from llmd.api.ops import FACTOR_OPS
from llmd.api.tensors import PLAIN_FORMATS, SCALED_FORMATS, Format, TensorRef
from llmd.models.checkpoint import Checkpoint

QUANTIZED_OPS = frozenset(FACTOR_OPS)
"""Ops whose matrices are quantised, because each step reads all of them. Embeddings are read row by row."""

NEAREST: Mapping[Format, tuple[Format, ...]] = {
    "f32": ("f32", "bf16", "f16"),  # bf16 keeps the range
    "bf16": ("bf16", "f32", "f16"),
    "f16": ("f16", "f32", "bf16"),
    # Values of at most ten bits times a scale: f16's rounding error is far below that of the blocks.
    **dict.fromkeys((*INTEGER_FORMATS, *SCALED_FORMATS), ("f16", "f32", "bf16")),
}
"""The plain formats to which a stored format is converted, best first."""


def format_policy(
    checkpoint: Checkpoint, device: DeviceInfo, quant: Format | None
) -> Callable[[str, TensorRef], Format]:
    """Return a function ``(op kind, tensor) → format`` for lowering.

    Matrices of linear and head ops become ``quant``, or what `quantized_format` returns for it. Matrices
    stored as integers, or in a scaled format, keep their format if the device supports it for ops of that
    kind. All other weights keep their stored format, or get the device's nearest plain format.

    Raises:
        ConfigError: ``quant`` is not one of our formats, or the stored weights are quantised already.
        PluginError: the device has no plain format.
    """
    _check_quant(quant)
    _refuse_quantizing_again(checkpoint, quant)
    nearest = {stored: nearest_format(stored, device.formats) for stored in NEAREST}

    def format_of(op_kind: str, ref: TensorRef) -> Format:
        if ref.integers_below is not None:
            return "f32"
        stored = checkpoint.tensors[ref.name].format
        assert stored is not None, "check_plan refuses other dtypes"
        if not ref.is_matrix:
            return nearest[stored]
        if quant is not None and op_kind in QUANTIZED_OPS:
            return quantized_format(quant, device.formats, ref.view_shape[-1]) or nearest[stored]
        kept = stored in device.formats and op_kind in device.integer_ops
        if kept and stored not in PLAIN_FORMATS and ref.is_transposed:  # groups along the outputs
            # Few matrices are: a device that multiplies FP8 without a loss widens them without one, too.
            return nearest["f32" if stored in SCALED_FORMATS else stored]
        return stored if kept else nearest[stored]

    return format_of


def _check_quant(quant: Format | None) -> None:
    if quant is not None and quant not in OWN_FORMATS:
        raise ConfigError(
            f"quant {quant}: weights cannot be quantised to this format",
            hint=f"choose one of {', '.join(OWN_FORMATS)}, or leave it out to keep the checkpoint's formats",
        )


def quantized_format(quant: Format, device_formats: Sequence[Format], row_len: int) -> Format | None:
    """Return ``quant``, or the nearest of our formats that the device has and that fits rows of this length.

    Two-level scales need whole blocks; other rows use groups of 32 with the same number of bits. If the
    device lacks a format, the result is the next one with at least as many bits; None (plain weights) if
    there is no such format.
    """
    form = INTEGER_FORMATS[quant]
    if form.coarse_size and row_len % form.coarse_size:
        form = INTEGER_FORMATS[f"{quant}_g32"]
    if form.name in device_formats:
        return form.name
    larger = [
        other
        for other in (INTEGER_FORMATS[name] for name in OWN_FORMATS if name in device_formats)
        if other.bits >= form.bits and not (other.coarse_size and row_len % other.coarse_size)
    ]
    return min(larger, key=lambda other: other.bits).name if larger else None


def _refuse_quantizing_again(checkpoint: Checkpoint, quant: Format | None) -> None:
    if quant is not None and (quantized := stored_integers(checkpoint)):
        raise ConfigError(
            f"quant {quant}: the weights of {checkpoint.file} are stored quantised already, as {', '.join(quantized)}",
            hint='leave it out, set `quant = "none"` for this model, or quantise the model in a plain format',
        )


def stored_integers(checkpoint: Checkpoint) -> list[Format]:
    """Return the integer formats among those in which weights of the checkpoint are stored."""
    return sorted(stored_formats(checkpoint) & INTEGER_FORMATS.keys())


def stored_formats(checkpoint: Checkpoint) -> set[Format]:
    """Return every format in which a weight of the checkpoint is stored."""
    return {tensor.format for tensor in checkpoint.tensors.values() if tensor.format is not None}


def nearest_format(stored: Format, device_formats: Sequence[Format]) -> Format:
    """Return the device's plain format that loses the least; ``stored`` itself if possible.

    Raises:
        PluginError: the device has no plain format.
    """
    for candidate in NEAREST[stored]:
        if candidate in device_formats:
            return candidate
    raise PluginError(
        f"the device supports no plain weight format (supported: {', '.join(device_formats) or 'none'})",
        hint="every device needs f32 for norms; report this to the plugin's author",
    )


def conversion_notices(
    checkpoint: Checkpoint, device_formats: Sequence[Format], quant: Format | None, *, device: str
) -> tuple[str, ...]:
    """Return sentences about conversions by `format_policy` that the user did not request."""
    notices: list[str] = []
    if quant is not None and quant not in device_formats:
        used = quantized_format(quant, device_formats, 0)
        instead = f"weights are quantised to {used}" if used else "weights stay as they are stored"
        notices.append(f"device {device} does not compute with {quant}: {instead}")
    for stored in sorted(stored_formats(checkpoint) - set(device_formats)):
        used = nearest_format(stored, device_formats)
        notices.append(f"device {device} does not compute with {stored}: weights are converted to {used}")
    return tuple(notices)
