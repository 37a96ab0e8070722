"""Measure what steps cost on a device: a `DeviceProfile`.

Small models run on the device as any model would, so that every backend is measured in the same way, with all
that a step takes. What a step takes at any size is measured first, and subtracted from the rest.
"""

from __future__ import annotations

import math

import msgspec

from llmd.api.device import Device, DeviceProfile
from llmd.api.errors import PluginError
from llmd.api.kv import kv_block_bytes
from llmd.api.step import BLOCK_LEN
from llmd.api.streaming import may_stream
from llmd.api.tensors import Format, Weight
from llmd.models.weight_formats import nearest_format, weight_bytes
from llmd.profiling.plans import HEAD_DIM, attention_plan, feed_forward_plan
from llmd.profiling.timed_model import TimedModel

INTEGER_FORMATS: tuple[Format, ...] = ("q8", "q4")
"""Formats that are measured in addition to the device's plain format, if it has them."""
SLOW_BYTES_PER_S = 2e9
"""Devices that decode more slowly are measured with small models."""
LONGEST_STEP_S = 0.1
"""Steps that would take longer are left out: fewer rows show the rate of a slow device as well."""
TINY, MANY = 64, 17
"""Width of a layer that computes next to nothing, and a number of such layers."""
HEADS, KV_HEADS, KV_LAYERS = 32, 8, 2
"""The model of attention."""


class Sizes(msgspec.Struct, frozen=True):
    """Sizes of the models that are run."""

    hidden: int
    ffn: int
    layers: int
    """Layers whose weights are more than caches hold."""
    rows: tuple[int, ...]
    """Rows of the steps that show how fast many rows are multiplied."""
    context_len: int
    chunk_len: int
    """Rows of other steps of many rows."""


LARGE = Sizes(2048, 6144, 4, (16, 128, 512), context_len=4096, chunk_len=128)
SMALL = Sizes(1024, 2048, 1, (16,), context_len=256, chunk_len=16)


class ProductRates(msgspec.Struct, frozen=True):
    """How fast rows are multiplied by weights of a format."""

    decode_bytes_per_s: float
    prefill_flops_per_s: dict[int, float]


def full_profile(device: Device, budget_s: float) -> DeviceProfile:
    """Measure everything. Steps are timed for about ``budget_s`` seconds; loading comes in addition.

    Raises:
        LlmdError: the device failed, or cannot run models of attention and feed-forward layers.
    """
    read, share_s = read_rate(device, budget_s / 5), budget_s / 25
    step_s, part_s = fixed_seconds(device, share_s)
    sizes = suitable_sizes(device, share_s)
    products = {
        name: product_rates(device, name, sizes, share_s, step_s, part_s) for name in measured_formats(device)
    }
    kv_rate, attention_rate = attention_rates(device, sizes, share_s)
    return DeviceProfile(
        read_bytes_per_s=read,
        # Models that fit into caches would be read faster than real ones.
        decode_bytes_per_s={name: min(read, rates.decode_bytes_per_s) for name, rates in products.items()},
        prefill_flops_per_s={name: rates.prefill_flops_per_s for name, rates in products.items()},
        kv_bytes_per_s=min(read, kv_rate),
        attention_flops_per_s=attention_rate,
        step_s=step_s,
        part_s=part_s,
        copy_bytes_per_s=copy_rate(device, sizes, share_s),
        stream_bytes_per_s=stream_rate(device, sizes, share_s, step_s) if may_stream(device.info) else 0.0,
    )


def short_profile(device: Device, budget_s: float) -> DeviceProfile:
    """Measure some rates, in about ``budget_s`` seconds: enough to see if the device is as fast as before.

    Raises:
        LlmdError: the device failed, or cannot run models of feed-forward layers.
    """
    name = measured_formats(device)[-1]
    rates = product_rates(device, name, SMALL, budget_s / 5)
    return DeviceProfile(
        read_bytes_per_s=read_rate(device, budget_s / 3),
        decode_bytes_per_s={name: rates.decode_bytes_per_s},
        prefill_flops_per_s={name: rates.prefill_flops_per_s},
    )


def suitable_sizes(device: Device, budget_s: float) -> Sizes:
    """Return large sizes, unless the device is so slow that these would take minutes."""
    rates = product_rates(device, measured_formats(device)[-1], SMALL, budget_s)
    return LARGE if rates.decode_bytes_per_s > SLOW_BYTES_PER_S else SMALL


def measured_formats(device: Device) -> list[Format]:
    """Return the formats of weights that are measured on a device."""
    return [_plain(device), *(name for name in INTEGER_FORMATS if name in device.info.formats)]


def read_rate(device: Device, budget_s: float) -> float:
    """Return the bytes per second at which the device says that it reads memory.

    Raises:
        PluginError: it said something else.
    """
    rate: object = device.read_rate(budget_s)
    if not isinstance(rate, int | float) or not 0 < rate < math.inf:
        raise PluginError(
            f"its read_rate returned {rate!r}, which is no number of bytes per second",
            hint="report it to its authors",
        )
    return float(rate)


def fixed_seconds(device: Device, budget_s: float) -> tuple[float, float]:
    """Return the seconds of a step, and of each part of a layer, with next to nothing to compute."""
    times = []
    for layers in (1, MANY):
        with TimedModel(device, feed_forward_plan(TINY, TINY, layers), _plain(device), 1) as model:
            times.append(model.step_seconds(1, budget_s))
    part_s = max(0.0, (times[1] - times[0]) / (MANY - 1))
    return max(0.0, times[0] - part_s), part_s


def product_rates(
    device: Device, name: Format, sizes: Sizes, budget_s: float, step_s: float = 0.0, part_s: float = 0.0
) -> ProductRates:
    """Measure products of one and of many rows with weights in a format; the fixed seconds are subtracted."""
    with TimedModel(device, feed_forward_plan(sizes.hidden, sizes.ffn, sizes.layers), name, 1) as model:
        seconds = model.step_seconds(1, budget_s)
        decode = sum(map(weight_bytes, _matrices(model))) / _net(seconds, step_s + sizes.layers * part_s)
    rows, seconds = 1, seconds / sizes.layers
    flops: dict[int, float] = {}
    with TimedModel(device, feed_forward_plan(sizes.hidden, sizes.ffn, 1), name, max(sizes.rows)) as model:
        elements = sum(math.prod(weight.ref.shape) for weight in _matrices(model))
        for more in sizes.rows:
            if flops and seconds * more / rows > LONGEST_STEP_S:
                break
            rows, seconds = more, model.step_seconds(more, budget_s)
            flops[rows] = 2.0 * rows * elements / _net(seconds, step_s + part_s)
    return ProductRates(decode, flops)


def _matrices(model: TimedModel) -> list[Weight]:
    return [weight for weight in model.program.weights if weight.ref.name in model.matrices]


def attention_rates(device: Device, sizes: Sizes, budget_s: float) -> tuple[float, float]:
    """Return two rates of attention to a long context.

    These are bytes of keys and values per second for one row, and operations per second for many rows: two
    multiply-adds for each element of each head and position.
    """
    most, chunk = sizes.context_len, sizes.chunk_len
    seconds = []
    plan = attention_plan(TINY, HEADS, KV_HEADS, KV_LAYERS, most)
    with TimedModel(device, plan, _plain(device), chunk) as model:
        model.fill(chunk)
        for rows in (1, chunk):
            late_s = model.step_seconds(rows, budget_s, position=most - rows)
            seconds.append(_net(late_s, model.step_seconds(rows, budget_s)))
        block_bytes = kv_block_bytes(model.program.groups[0], model.kv_dtype)
    flops = 4.0 * KV_LAYERS * HEADS * HEAD_DIM * chunk * (most - chunk)
    return block_bytes * (most - 1) / BLOCK_LEN / seconds[0], flops / seconds[1]


def copy_rate(device: Device, sizes: Sizes, budget_s: float) -> float:
    """Return the bytes per second of hidden states on their way to the device and back."""
    width, rows = sizes.hidden, sizes.chunk_len
    with TimedModel(device, feed_forward_plan(width, TINY, 1), _plain(device), rows, parts=(1, 2)) as model:
        many_s, one_s = model.step_seconds(rows, budget_s), model.step_seconds(1, budget_s)
    return 2.0 * 4 * width * (rows - 1) / _net(many_s, one_s)


def stream_rate(device: Device, sizes: Sizes, budget_s: float, step_s: float) -> float:
    """Return the bytes of streamed weights that are copied per second, for a step of one row."""
    plan = feed_forward_plan(sizes.hidden, sizes.ffn, sizes.layers)
    layers = range(1, sizes.layers + 1)
    with TimedModel(device, plan, _plain(device), 1, streamed=layers) as model:
        num_bytes = sum(map(weight_bytes, _matrices(model)))
        return num_bytes / _net(model.step_seconds(1, budget_s), step_s)


def _net(seconds: float, fixed_s: float) -> float:
    """Return seconds without those that are not meant. On a busy machine, the difference may be too small."""
    return max(seconds - fixed_s, seconds / 10)


def _plain(device: Device) -> Format:
    """Return the format of models whose weights are not quantised."""
    return nearest_format("bf16", device.info.formats)
