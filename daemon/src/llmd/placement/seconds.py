"""How long steps take on a device, by its measured rates.

For each format, the seconds of one row and of some numbers of rows were measured; between them they grow
linearly, and beyond them in proportion to the rows. A format that was not measured is as fast as the measured
one whose weights have the nearest number of bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import msgspec

from llmd.api.device import DeviceProfile
from llmd.api.integer_formats import INTEGER_FORMATS
from llmd.api.tensors import SCALED_FORMATS, Format
from llmd.placement.work import ExpertWeights, Weights, Work


class Rows(msgspec.Struct, frozen=True):
    """The rows of a step."""

    sequences: int
    """Sequences, with the same number of rows each."""
    rows: int
    """Rows of each sequence."""
    length: int
    """Tokens of each sequence, up to its last row."""


def step_seconds(work: Work, profile: DeviceProfile, rows: Rows) -> float:
    """Return the seconds that parts take in a step, without `DeviceProfile.step_s`."""
    return (
        work.num_parts * profile.part_s
        + _product_seconds(work.layers, profile, rows.sequences * rows.rows)
        + sum(_expert_seconds(one, profile, rows.sequences * rows.rows) for one in work.experts)
        + _product_seconds(work.head, profile, rows.sequences)
        + _attention_seconds(work, profile, rows)
    )


def _product_seconds(weights: Mapping[Format, Weights], profile: DeviceProfile, rows: int) -> float:
    return sum(_format_seconds(name, one, profile, rows) for name, one in weights.items())


def _expert_seconds(one: ExpertWeights, profile: DeviceProfile, rows: int) -> float:
    """Return the seconds of the experts that some row uses: each is multiplied by as many rows on average."""
    share = one.share(rows)
    used = Weights(round(one.whole.num_bytes * share), round(one.whole.elements * share))
    return _format_seconds(one.format, used, profile, rows * one.top_k / (one.num_experts * share))


def _format_seconds(name: Format, weights: Weights, profile: DeviceProfile, rows: float) -> float:
    """Return the seconds of multiplying rows by weights of one format."""
    measured = nearest_measured(name, profile)
    one_s = weights.num_bytes / profile.decode_bytes_per_s[measured]
    points = [(1, one_s)]
    for count, rate in sorted(profile.prefill_flops_per_s.get(measured, {}).items()):
        points.append((count, max(points[-1][1], 2.0 * count * weights.elements / rate)))
    for (low, low_s), (high, high_s) in itertools.pairwise(points):
        if rows <= high:
            return low_s + (high_s - low_s) * (rows - low) / (high - low)
    last, last_s = points[-1]
    return last_s * rows / last


def nearest_measured(name: Format, profile: DeviceProfile) -> Format:
    """Return the format that was measured and has about as many bits as this one."""
    bits = _bits(name)
    return min(profile.decode_bytes_per_s, key=lambda other: (other != name, abs(_bits(other) - bits)))


def _bits(name: Format) -> float:
    """Return the bits of a weight, without scales."""
    if name in INTEGER_FORMATS:
        return INTEGER_FORMATS[name].bits
    if name in SCALED_FORMATS:
        return 8
    return 32 if name == "f32" else 16


def _attention_seconds(work: Work, profile: DeviceProfile, rows: Rows) -> float:
    """Return the seconds of reading states, keys and values, or of computing if that takes longer."""
    seconds = rows.sequences * work.state_bytes / profile.kv_bytes_per_s
    for span in work.spans:
        positions = span.positions(rows.length)
        read_s = span.num_bytes * positions / profile.kv_bytes_per_s
        # Each row sees one position more than the row before it.
        seen = (
            rows.rows * positions if span.window else sum(range(rows.length - rows.rows + 1, rows.length + 1))
        )
        compute_s = span.flops * seen / profile.attention_flops_per_s if rows.rows > 1 else 0.0
        seconds += rows.sequences * max(read_s, compute_s)
    return seconds
