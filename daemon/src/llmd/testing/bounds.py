"""The largest errors that the conformance suite accepts, as NMSE against the reference."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from llmd.api import KVDtype, Precision


class Bounds(msgspec.Struct, frozen=True):
    """The largest errors with one precision and KV dtype."""

    part: float
    """For an op, or the few ops of a part."""
    program: float
    """For a whole program, where an error in one layer grows in the next."""


_F16 = Bounds(3e-6, 1e-4)
_BF16 = Bounds(2e-4, 1e-2)

MAX_NMSE: Mapping[Precision, Mapping[KVDtype, Bounds]] = {
    # Keys that differ by a float32 rounding may be stored as neighbouring codes.
    "f32": {
        "f32": Bounds(1e-9, 1e-9),
        "f16": Bounds(1e-8, 1e-6),
        "bf16": Bounds(1e-6, 1e-5),
        "int8": Bounds(1e-6, 2e-5),
        "int4": Bounds(1e-5, 1e-2),
    },
    # About three times the error of a device that also rounds weights, keys, values and products.
    "f16": {
        "f32": _F16,
        "f16": _F16,
        "bf16": Bounds(5e-5, 1e-3),
        "int8": Bounds(5e-5, 1e-2),
        "int4": Bounds(3e-3, 1e-1),
    },
    "bf16": {
        "f32": _BF16,
        "f16": _BF16,
        "bf16": _BF16,
        "int8": Bounds(5e-4, 2e-2),
        "int4": Bounds(1e-2, 3e-1),
    },
}
"""By `Program.precision` and KV dtype. docs/ops.md has this table."""
