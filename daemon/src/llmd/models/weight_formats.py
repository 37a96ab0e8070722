"""Which format each weight gets on a device, from what is stored, what was asked for, and what the device has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from llmd.api.device import DeviceInfo
from llmd.api.errors import ConfigError, PluginError
from llmd.api.integer_formats import INTEGER_FORMATS, OWN_FORMATS
from llmd.api.ops import FACTOR_OPS
from llmd.api.tensors import PLAIN_FORMATS, Format, TensorRef, Weight
from llmd.models.checkpoint import Checkpoint

QUANTIZED_OPS = frozenset(FACTOR_OPS)
"""Ops whose matrices are quantised: they are read whole each step. An embedding is read row by row."""

NEAREST: Mapping[Format, tuple[Format, ...]] = {
    "f32": ("f32", "bf16", "f16"),  # bf16 keeps the range
    "bf16": ("bf16", "f32", "f16"),
    "f16": ("f16", "f32", "bf16"),
    # Numbers of ten bits at most, times a scale: what f16 rounds off is far below what the blocks have.
    **dict.fromkeys(INTEGER_FORMATS, ("f16", "f32", "bf16")),
}
"""The plain formats that a stored one becomes, best first."""


def format_policy(
    checkpoint: Checkpoint, device: DeviceInfo, quant: Format | None
) -> Callable[[str, TensorRef], Format]:
    """A function ``(op kind, tensor) → format`` for lowering.

    Matrices of linear and head ops become ``quant``, or what `quantized_format` has for it. Matrices that are stored as
    integers stay so where the device has their format, for ops of that kind. All other weights stay in their stored
    format, or in the nearest plain one of the device.

    Raises:
        ConfigError: ``quant`` is none of our formats, or weights are to be quantised that are stored quantised.
        PluginError: the device has no plain format.
    """
    _check_quant(quant)
    _refuse_quantizing_again(checkpoint, quant)
    nearest = {stored: nearest_format(stored, device.formats) for stored in NEAREST}

    def format_of(op_kind: str, ref: TensorRef) -> Format:
        stored = checkpoint.tensors[ref.name].format
        assert stored is not None, "check_plan refuses other dtypes"
        if len(ref.shape) != 2:
            return nearest[stored]
        if quant is not None and op_kind in QUANTIZED_OPS:
            return quantized_format(quant, device.formats, ref.shape[1]) or nearest[stored]
        return stored if stored in device.formats and op_kind in device.integer_ops else nearest[stored]

    return format_of


def _check_quant(quant: Format | None) -> None:
    if quant is not None and quant not in OWN_FORMATS:
        raise ConfigError(
            f"--quant {quant}: weights are not quantised to that",
            hint=f"choose one of {', '.join(OWN_FORMATS)}, or leave it out to keep the checkpoint's formats",
        )


def quantized_format(quant: Format, device_formats: Sequence[Format], row_len: int) -> Format | None:
    """``quant``, or the nearest of our formats that the device has and rows of this length can have.

    Scales of two levels are for whole blocks; other rows get groups of 32 of as many bits. A device that lacks a format gets
    the next one with at least as many bits, or plain weights: None.
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
    quantized = sorted(stored_formats(checkpoint) & INTEGER_FORMATS.keys())
    if quant is not None and quantized:
        raise ConfigError(
            f"--quant {quant}: the weights of {checkpoint.file} are stored quantised already, as {', '.join(quantized)}",
            hint="leave it out, or quantise the model in a plain format",
        )


def stored_formats(checkpoint: Checkpoint) -> set[Format]:
    """Every format that a weight of the checkpoint is stored in."""
    return {tensor.format for tensor in checkpoint.tensors.values() if tensor.format is not None}


def nearest_format(stored: Format, device_formats: Sequence[Format]) -> Format:
    """The plain format of the device that keeps most of what is stored; ``stored`` itself where it is plain and there.

    Raises:
        PluginError: the device has no plain format.
    """
    for candidate in NEAREST[stored]:
        if candidate in device_formats:
            return candidate
    raise PluginError(
        f"the device takes weights as {', '.join(device_formats) or 'nothing'}, none of which is plain",
        hint="every device needs f32 for norms; report this to the plugin's author",
    )


def conversion_notices(
    checkpoint: Checkpoint, device_formats: Sequence[Format], quant: Format | None, *, device: str
) -> tuple[str, ...]:
    """Sentences about what a device makes `format_policy` do that nobody asked for."""
    notices: list[str] = []
    if quant is not None and quant not in device_formats:
        used = quantized_format(quant, device_formats, 0)
        instead = f"weights are quantised to {used}" if used else "weights stay as they are stored"
        notices.append(f"device {device} does not compute with {quant}: {instead}")
    for stored in sorted(stored_formats(checkpoint) - set(device_formats)):
        used = nearest_format(stored, device_formats)
        notices.append(f"device {device} does not compute with {stored}: weights are converted to {used}")
    return tuple(notices)


def weight_bytes(weight: Weight) -> int:
    """Bytes of a weight in its format, scales included."""
    shape = weight.ref.view_shape
    count = math.prod(shape)
    if weight.format in PLAIN_FORMATS:
        return count * (4 if weight.format == "f32" else 2)
    return shape[0] * INTEGER_FORMATS[weight.format].weight_bytes(shape[1])
