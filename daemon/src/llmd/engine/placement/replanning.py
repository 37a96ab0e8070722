"""Where a model goes when devices are lost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import structs

from llmd.api.messages import Load
from llmd.engine.placement.automatic import planned_stages
from llmd.engine.placement.candidates import MachineDevices
from llmd.engine.placement.stages import StageParts, joined
from llmd.models.open_model import OpenModel


def stages_after_loss(
    load: Load,
    model: OpenModel,
    devices: MachineDevices | None,
    stages: Sequence[StageParts],
    lost: Collection[str],
    free_bytes: Mapping[str, int],
) -> Iterator[tuple[StageParts, ...]]:
    """Yield the stages to try when devices are lost.

    First comes a plan for the devices that are left, as far as they were measured; then the present stages
    with a single device in place of the lost ones.

    ``load`` and ``model`` come from `with_default_quant`. The model may take ``free_bytes`` of the memories
    whose devices are open.
    """
    usable = devices.usable() if devices else []
    left = [device for device in usable if device.info.name not in lost]
    candidates = [
        structs.replace(one, free_bytes=free_bytes.get(one.info.memory_id, one.free_bytes))
        for one in (devices.measured(left) if devices else ())
    ]
    planned = planned_stages(load, model, candidates)
    if planned:
        yield planned
    for heir in heirs(stages, lost, [device.info.name for device in left]):
        moved = take_over(stages, lost, heir)
        if moved != planned:
            yield moved


def heirs(stages: Sequence[StageParts], lost: Collection[str], usable: Sequence[str]) -> list[str]:
    """Return the devices that may take over the stages of lost devices, in the order to try them.

    First the devices that have stages already, then other usable devices, best first.
    """
    names = dict.fromkeys([*(spec.device for spec in stages), *usable])
    return [name for name in names if name not in lost]


def take_over(stages: Sequence[StageParts], lost: Collection[str], heir: str) -> tuple[StageParts, ...]:
    """Return the stages with those of lost devices on ``heir``; neighbours on one device are joined."""
    return joined(
        [structs.replace(spec, device=heir, streamed=()) if spec.device in lost else spec for spec in stages]
    )
