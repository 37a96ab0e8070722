"""The devices of this machine, and which parts of which models they have."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from aiohttp import web

from llmd.api.device import HOST_MEMORY, DeviceProfile
from llmd.api.machine import available_bytes, total_bytes
from llmd.api.messages import StageReport
from llmd.api.reports import Report
from llmd.engine.placement.prediction import Prediction
from llmd.host.devices import DeviceState, FailedBackend
from llmd.host.old_keys import with_old_keys
from llmd.host.plugin_host import PluginHost
from llmd.server.dialects.native.reply import reply
from llmd.server.models.served_model import ServedModel
from llmd.server.service import Service
from llmd.server.telemetry.device_facts import DeviceFacts, Known
from llmd.server.telemetry.device_reasons import why_device
from llmd.server.telemetry.kernel_names import kernel_names
from llmd.server.telemetry.stage_times import stage_times

USES = ("weight_bytes", "kv_bytes", "step_bytes")


async def devices(_request: web.Request, service: Service) -> web.Response:
    """Return every device that a probe found, the backends whose probes failed, and the memories."""
    states = await service.ask_host(PluginHost.devices)
    failed = await service.ask_host(PluginHost.failed_backends)
    rows = await service.in_thread(device_rows, states, service.measured)
    rows += [failed_row(backend) for backend in failed]
    stages = [stage for model in service.models.served if model.loaded for stage in model.loaded.stages]
    return reply(
        {
            "devices": [with_old_keys(row) for row in rows],
            "memories": memory_rows(states, stages),
        }
    )


async def plan(_request: web.Request, service: Service) -> web.Response:
    """Return which parts of each loaded model are on which device, why, and the memory that they take."""
    facts = await service.device_facts()
    models = [model for model in service.models.served if model.loaded is not None]
    predicted = await service.predicted(models)
    reports = await asyncio.gather(*(model.supervisor.report() for model in models))
    rows = [
        _plan_row(model, facts, predicted.get(model.name), report)
        for model, report in zip(models, reports, strict=True)
    ]
    return reply({"models": rows})


def device_rows(states: Iterable[DeviceState], known: Known) -> list[dict[str, Any]]:
    """Return the rows of devices. Reads files with measured rates."""
    return [
        {
            "name": state.info.name,
            "kind": state.info.kind,
            "description": state.info.description,
            "memory_bytes": state.info.memory_bytes,
            "memory_id": state.info.memory_id,
            "score": state.info.score,
            **_rates(known(state) if state.ok else None),
            "plugin": state.plugin.name,
            "ok": state.ok,
            "reason": state.reason,
            "fix": state.fix,
        }
        for state in states
    ]


def failed_row(backend: FailedBackend) -> dict[str, Any]:
    """Return the row of a backend whose devices are not known."""
    return {
        "name": backend.name,
        "kind": "",
        "description": "",
        "memory_bytes": None,
        "memory_id": None,
        "score": 0,
        **_rates(None),
        "plugin": backend.plugin.name,
        "ok": False,
        "reason": backend.failure.reason,
        "fix": backend.failure.fix,
    }


def memory_rows(states: Sequence[DeviceState], stages: Sequence[StageReport]) -> list[dict[str, Any]]:
    """Return what each memory is used for. What other programs use is known of main memory alone."""
    usable = [state.info for state in states if state.ok]
    rows = []
    for memory_id in dict.fromkeys(info.memory_id for info in usable):
        uses: Counter[str] = Counter()
        for stage in stages:
            if stage.memory_id == memory_id:
                uses.update({use: getattr(stage, use) for use in USES})
        is_host = memory_id == HOST_MEMORY
        sizes = [info.memory_bytes for info in usable if info.memory_id == memory_id]
        total = total_bytes() if is_host else max(sizes)
        free = available_bytes() if is_host else None
        rows.append(
            {
                "memory_id": memory_id,
                "devices": [info.name for info in usable if info.memory_id == memory_id],
                "total_bytes": total,
                "free_bytes": free,
                **{use: uses[use] for use in USES},
                "other_bytes": None if free is None else max(0, total - free - uses.total()),
            }
        )
    return rows


def _rates(profile: DeviceProfile | None) -> dict[str, Any]:
    """Return the measured rates; null if it was not measured."""
    return {
        "read_bytes_per_s": profile.read_bytes_per_s if profile else None,
        "decode_bytes_per_s": dict(profile.decode_bytes_per_s) if profile else {},
        "prefill_flops_per_s": profile.fastest_prefill if profile else None,
    }


def _plan_row(
    model: ServedModel, facts: DeviceFacts, prediction: Prediction | None, report: Report | None
) -> dict[str, Any]:
    """Return where a model is. Milliseconds are those of steps with a single sequence."""
    stages = model.loaded.stages if model.loaded else ()
    reason = why_device(
        model.supervisor.asked,
        is_divided=len({stage.device for stage in stages}) > 1,
        is_measured=facts.are_measured,
        lost=model.supervisor.lost_devices,
        unusable=facts.unusable,
    )
    return {
        "name": model.name,
        "stages": [
            {
                **msgspec.to_builtins(stage),
                "reason": reason,
                "predicted_ms": times.predicted_ms,
                "measured_ms": times.measured_ms,
                "kernels": list(names),
            }
            for stage, times, names in zip(
                stages,
                stage_times(stages, prediction, report),
                kernel_names(stages, facts, report),
                strict=True,
            )
        ],
        "map": [[name, stage.device] for stage in stages for name in stage.part_names],
    }
