"""The kernels that the devices of a model use, in words."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.messages import StageReport
from llmd.api.reports import Report
from llmd.server.telemetry.device_facts import DeviceFacts


def kernel_names(
    stages: Sequence[StageReport], facts: DeviceFacts, report: Report | None
) -> list[tuple[str, ...]]:
    """Return what is known of the kernels of each stage.

    First comes the description of its device, which names its hardware and often its instruction set, then
    what the stage says, then what it does more slowly than usual.
    """
    uses = report.kernels if report else ()
    found = []
    for number, stage in enumerate(stages):
        use = uses[number] if len(uses) == len(stages) else None
        names = (*use.names, *(path.what for path in use.slow)) if use else ()
        info = facts.infos.get(stage.device)
        found.append((info.description, *names) if info and info.description else names)
    return found
