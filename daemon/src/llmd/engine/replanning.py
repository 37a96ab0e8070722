"""Where the stages of lost devices go."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from llmd.api.messages import StageSpec


def heirs(stages: Sequence[StageSpec], lost: Collection[str], usable: Sequence[str]) -> list[str]:
    """Return the devices that may take over the stages of lost devices, in the order to try them.

    First the devices that have stages already, then other usable devices, best first.
    """
    names = dict.fromkeys([*(spec.device for spec in stages), *usable])
    return [name for name in names if name not in lost]


def take_over(stages: Sequence[StageSpec], lost: Collection[str], heir: str) -> tuple[StageSpec, ...]:
    """Return the stages with those of lost devices on ``heir``; neighbours on one device are joined."""
    joined: list[StageSpec] = []
    for spec in stages:
        device = heir if spec.device in lost else spec.device
        if joined and joined[-1].device == device:
            joined[-1] = msgspec.structs.replace(joined[-1], last=spec.last)
        else:
            joined.append(msgspec.structs.replace(spec, device=device))
    return tuple(joined)
