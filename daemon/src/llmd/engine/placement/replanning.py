"""Where the stages of lost devices go."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from llmd.engine.placement.stages import StageParts


def heirs(stages: Sequence[StageParts], lost: Collection[str], usable: Sequence[str]) -> list[str]:
    """Return the devices that may take over the stages of lost devices, in the order to try them.

    First the devices that have stages already, then other usable devices, best first.
    """
    names = dict.fromkeys([*(spec.device for spec in stages), *usable])
    return [name for name in names if name not in lost]


def take_over(stages: Sequence[StageParts], lost: Collection[str], heir: str) -> tuple[StageParts, ...]:
    """Return the stages with those of lost devices on ``heir``; neighbours on one device are joined."""
    joined: list[StageParts] = []
    for spec in stages:
        device = heir if spec.device in lost else spec.device
        if joined and joined[-1].device == device:
            joined[-1] = msgspec.structs.replace(joined[-1], last_part=spec.last_part)
        else:
            joined.append(msgspec.structs.replace(spec, device=device))
    return tuple(joined)
