"""Measure what steps cost on a device: a `DeviceProfile`.

Small models run on the device as any model would, so that every backend is measured in the same way, with all
that a step takes. What a step takes at any size is measured first, and subtracted from the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack

import msgspec

from llmd.api.device import Device, DeviceProfile
from llmd.api.errors import PluginError
from llmd.api.kv import kv_block_bytes
from llmd.api.step import BLOCK_LEN
from llmd.api.streaming import may_stream
from llmd.api.tensors import Format, Weight
from llmd.models.program_bytes import BUFFERED_PARTS
from llmd.models.weight_formats import nearest_format
from llmd.profiling.plans import HEAD_DIM, attention_plan, feed_forward_plan
from llmd.profiling.time_shares import TimeShares
from llmd.profiling.timed_model import TimedModel, seconds_in_turns

INTEGER_FORMATS: tuple[Format, ...] = ("q8", "q4")
"""Formats that are measured in addition to the device's plain format, if it has them."""
SLOW_BYTES_PER_S = 2e9
"""Devices that decode more slowly are measured with small models."""
LONGEST_STEP_S = 0.1
"""Steps that would take longer are left out: fewer rows show the rate of a slow device as well."""
TINY, MANY = 64, 17
"""Width of a layer that computes next to nothing, and a number of such layers."""
HEADS, KV_HEADS = 32, 8
"""The model of attention."""


class Sizes(msgspec.Struct, frozen=True):
    """Sizes of the models that are run."""

    hidden: int
    ffn: int
    layers: int
    """Layers whose weights are more than caches hold."""
    rows: tuple[int, ...]
    """Rows of the steps that show how fast many rows are multiplied."""
    many_rows_ffn: int
    """In place of ``ffn``, in those steps."""
    kv_layers: int
    """Layers of the model of attention."""
    context_len: int
    chunk_len: int
    """Rows of other steps of many rows."""


LARGE = Sizes(2048, 6144, 3, (16, 64, 256, 512), 6144, kv_layers=2, context_len=4096, chunk_len=128)
SMALL = Sizes(1024, 2048, 1, (64,), 1024, kv_layers=1, context_len=256, chunk_len=64)
READ_SHARES = 5
"""Shares of the time for the rate of reading, which needs the most memory."""
OTHER_SHARES = 11
"""Shares for all other measurements but those of products: one for each time of a step."""


class Fixed(msgspec.Struct, frozen=True):
    """Seconds that do not depend on what is computed."""

    step_s: float = 0.0
    """Of a step."""
    part_s: float = 0.0
    """Of each part of a layer."""


def full_profile(device: Device, budget_s: float) -> DeviceProfile:
    """Measure everything, in about ``budget_s`` seconds, of which loading takes a part. A device that is too
    slow for that takes longer: each step is timed at least once.

    Raises:
        LlmdError: the device failed, or cannot run models of attention and feed-forward layers.
    """
    names = measured_formats(device)
    shares = TimeShares(budget_s, READ_SHARES + OTHER_SHARES + len(names) * (1 + len(LARGE.rows)))
    read = read_rate(device, shares.take(READ_SHARES))
    fixed = fixed_seconds(device, shares)
    sizes = suitable_sizes(device, shares.take())
    decode = decode_rates(device, names, sizes, shares.take(len(names)), fixed)
    prefill = prefill_rates(device, names, sizes, shares, fixed)
    kv_rate, attention_rate = attention_rates(device, sizes, shares)
    return DeviceProfile(
        read_bytes_per_s=read,
        # Models that fit into caches would be read faster than real ones.
        decode_bytes_per_s={name: min(read, rate) for name, rate in decode.items()},
        prefill_flops_per_s=prefill,
        kv_bytes_per_s=min(read, kv_rate),
        attention_flops_per_s=attention_rate,
        step_s=fixed.step_s,
        part_s=fixed.part_s,
        copy_bytes_per_s=copy_rate(device, sizes, shares),
        stream_bytes_per_s=(
            stream_rate(device, sizes, shares, fixed, decode[names[0]]) if may_stream(device.info) else 0.0
        ),
    )


def short_profile(device: Device, budget_s: float) -> DeviceProfile:
    """Measure some rates, in about ``budget_s`` seconds: enough to see if the device is as fast as before.

    Raises:
        LlmdError: the device failed, or cannot run models of feed-forward layers.
    """
    name = measured_formats(device)[-1]
    shares = TimeShares(budget_s, 3)
    return DeviceProfile(
        read_bytes_per_s=read_rate(device, shares.take()),
        decode_bytes_per_s=decode_rates(device, [name], SMALL, shares.take(), Fixed()),
        prefill_flops_per_s=prefill_rates(device, [name], SMALL, shares, Fixed()),
    )


def suitable_sizes(device: Device, budget_s: float) -> Sizes:
    """Return large sizes, unless the device is so slow that these would take minutes."""
    rates = decode_rates(device, measured_formats(device)[-1:], SMALL, budget_s, Fixed())
    return LARGE if min(rates.values()) > SLOW_BYTES_PER_S else SMALL


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


def fixed_seconds(device: Device, shares: TimeShares) -> Fixed:
    """Return the seconds of steps and parts with next to nothing to compute."""
    times = []
    for layers in (1, MANY):
        with TimedModel(device, feed_forward_plan(TINY, TINY, layers), _plain(device), 1) as model:
            times.append(model.step_seconds(1, shares.take()))
    part_s = max(0.0, (times[1] - times[0]) / (MANY - 1))
    return Fixed(max(0.0, times[0] - part_s), part_s)


def decode_rates(
    device: Device, names: Sequence[Format], sizes: Sizes, budget_s: float, fixed: Fixed
) -> dict[Format, float]:
    """Return the bytes of weights in each format that a step of one row reads per second.

    The models of all formats take turns, so that caches do not keep the weights of one for its next step.
    """
    plan = feed_forward_plan(sizes.hidden, sizes.ffn, sizes.layers)
    with ExitStack() as opened:
        models = [opened.enter_context(TimedModel(device, plan, name, 1)) for name in names]
        times = seconds_in_turns(models, 1, budget_s)
    fixed_s = fixed.step_s + sizes.layers * fixed.part_s
    return {
        name: sum(weight.num_bytes for weight in _matrices(model)) / _net(seconds, fixed_s)
        for name, model, seconds in zip(names, models, times, strict=True)
    }


def prefill_rates(
    device: Device, names: Sequence[Format], sizes: Sizes, shares: TimeShares, fixed: Fixed
) -> dict[Format, dict[int, float]]:
    """Return the operations per second of products with weights in each format, by the rows of a step.

    The models of all formats take turns, as those of `decode_rates` do.
    """
    plan = feed_forward_plan(sizes.hidden, sizes.many_rows_ffn, 1)
    found: dict[Format, dict[int, float]] = {name: {} for name in names}
    with ExitStack() as opened:
        models = {
            name: opened.enter_context(TimedModel(device, plan, name, max(sizes.rows))) for name in names
        }
        elements = sum(math.prod(weight.ref.shape) for weight in _matrices(models[names[0]]))
        left, before = dict.fromkeys(names, 0.0), 1
        for rows in sizes.rows:
            left = {name: one_s for name, one_s in left.items() if one_s * rows / before <= LONGEST_STEP_S}
            budget_s = shares.take(len(names))
            times = seconds_in_turns([models[name] for name in left], rows, budget_s) if left else []
            left, before = dict(zip(left, times, strict=True)), rows
            for name, one_s in left.items():
                found[name][rows] = 2.0 * rows * elements / _net(one_s, fixed.step_s + fixed.part_s)
    return found


def _matrices(model: TimedModel) -> list[Weight]:
    return [weight for weight in model.program.weights if weight.ref.name in model.matrices]


def attention_rates(device: Device, sizes: Sizes, shares: TimeShares) -> tuple[float, float]:
    """Return two rates of attention to a long context.

    These are bytes of keys and values per second for one row, and operations per second for many rows: two
    multiply-adds for each element of each head and position.
    """
    chunk = sizes.chunk_len
    plan = attention_plan(TINY, HEADS, KV_HEADS, sizes.kv_layers, sizes.context_len)
    with TimedModel(device, plan, _plain(device), chunk) as model:
        model.fill(chunk, 2 * chunk)
        first_s, second_s = (model.step_seconds(chunk, shares.take(), position=at) for at in (0, chunk))
        most = suitable_context(sizes, first_s, second_s)
        last_s, share_s = second_s, shares.take()
        if most > 2 * chunk:
            model.fill(chunk, most)
            last_s = model.step_seconds(chunk, share_s, position=most - chunk)
        many_s = _net(last_s, first_s)
        late_s, early_s = (model.step_seconds(1, shares.take(), position=at) for at in (most - 1, 0))
        block_bytes = kv_block_bytes(model.program.groups[0], model.kv_dtype)
    flops = 4.0 * sizes.kv_layers * HEADS * HEAD_DIM * chunk * (most - chunk)
    return block_bytes * (most - 1) / BLOCK_LEN / _net(late_s, early_s), flops / many_s


def suitable_context(sizes: Sizes, first_s: float, second_s: float) -> int:
    """Return the tokens of a context whose last chunk does not take too long.

    Known are the seconds of its first two chunks. Each chunk takes as much longer than the one before it as
    the second does than the first.
    """
    longer_s = max(second_s - first_s, 1e-9)
    chunks = 1 + int(max(0.0, LONGEST_STEP_S - first_s) / longer_s)
    return min(max(2, chunks) * sizes.chunk_len, sizes.context_len)


def copy_rate(device: Device, sizes: Sizes, shares: TimeShares) -> float:
    """Return the bytes per second of hidden states on their way to the device and back."""
    width, rows = sizes.hidden, sizes.chunk_len
    with TimedModel(device, feed_forward_plan(width, TINY, 1), _plain(device), rows, parts=(1, 2)) as model:
        many_s, one_s = (model.step_seconds(count, shares.take()) for count in (rows, 1))
    return 2.0 * 4 * width * (rows - 1) / _net(many_s, one_s)


def stream_rate(
    device: Device, sizes: Sizes, shares: TimeShares, fixed: Fixed, decode_bytes_per_s: float
) -> float:
    """Return the bytes of streamed weights in the plain format that are copied per second."""
    count = max(sizes.layers, BUFFERED_PARTS + 1)  # fewer may stay in their buffers
    plan = feed_forward_plan(sizes.hidden, sizes.ffn, count)
    with TimedModel(device, plan, _plain(device), 1, streamed=range(1, count + 1)) as model:
        num_bytes = sum(weight.num_bytes for weight in _matrices(model))
        seconds = model.step_seconds(1, shares.take())
    # The last layer is computed once all copies are made.
    last_s = fixed.part_s + num_bytes / count / decode_bytes_per_s
    return num_bytes / _net(seconds, fixed.step_s + last_s)


def _net(seconds: float, fixed_s: float) -> float:
    """Return seconds without those that are not meant. On a busy machine, the difference may be too small."""
    return max(seconds - fixed_s, seconds / 10)


def _plain(device: Device) -> Format:
    """Return the format of models whose weights are not quantised."""
    return nearest_format("bf16", device.info.formats)
