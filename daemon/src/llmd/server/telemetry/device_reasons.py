"""Says why a model is on a device. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def why_device(*, is_split: bool, is_chosen: bool, lost: Sequence[str], unusable: Mapping[str, str]) -> str:
    """Return the reason in words.

    ``is_split`` and ``is_chosen`` are what the user has set; ``lost`` are devices that the engine has lost,
    ``unusable`` devices and backends with the reasons why they cannot be used.
    """
    if lost:
        return f"it took over from {' and '.join(lost)}, which failed"
    if is_split:
        return "the setting split assigns these layers to it"
    if is_chosen:
        return "the setting device names it"
    others = "".join(f"; {name} cannot be used: {reason}" for name, reason in unusable.items())
    return f"of the devices that can be used, it has the highest score{others}"
