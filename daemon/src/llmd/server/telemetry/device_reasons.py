"""Says why a model is on a device. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmd.api.messages import Load


def why_device(
    asked: Load,
    *,
    is_divided: bool = False,
    is_measured: bool = False,
    lost: Sequence[str] = (),
    unusable: Mapping[str, str] = {},
) -> str:
    """Return the reason in words.

    ``asked`` is what the user has set. ``is_divided``: the model is on several devices; ``is_measured``: the
    rates of all devices are known. ``lost`` are devices that the engine has lost, ``unusable`` devices and
    backends with the reasons why they cannot be used.
    """
    if lost:
        return f"it took over from {' and '.join(lost)}, which failed"
    if asked.stages:
        return "the setting split assigns these layers to it"
    if asked.division:
        return _division(asked)
    if asked.device not in {"auto", ""} and "," not in asked.device:
        return "the setting device names it"
    of = (
        "the devices that the setting device names"
        if asked.device != "auto"
        else "the devices that can be used"
    )
    others = "".join(f"; {name} cannot be used: {reason}" for name, reason in unusable.items())
    if is_divided:
        return f"no single one of {of} has room for the model, and this division answers fastest{others}"
    how = "answers fastest" if is_measured else "has the highest score"
    return f"of {of}, it {how}{others}"


def _division(asked: Load) -> str:
    if asked.cpu_experts is None:
        return f"the setting gpu_layers divides the model, with {asked.gpu_layers} layers on graphics cards"
    return f"the setting cpu_experts keeps the experts of {asked.cpu_experts} layers in main memory"
