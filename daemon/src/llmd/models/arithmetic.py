"""The arithmetic of a program: how rows are rounded before they are multiplied."""

from __future__ import annotations

import msgspec

from llmd.api.device import DeviceInfo
from llmd.api.program import ActivationDtype, Precision


class Arithmetic(msgspec.Struct, frozen=True):
    """The types that rows are rounded to."""

    activations: ActivationDtype
    """`Program.activations`."""
    precision: Precision
    """`Program.precision`."""


def chosen_arithmetic(info: DeviceInfo, activations: ActivationDtype | None) -> Arithmetic:
    """Return the arithmetic of a device for the asked type of activations; None: the device's choice.

    The device may not support it; `llmd.api.checks.missing_activations` refuses it then.
    """
    chosen = activations or info.activations[0]
    return Arithmetic(chosen, info.precisions[0] if chosen == "int8" else chosen)
