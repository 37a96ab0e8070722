"""The states of all models, with what there is to say of them."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct, structs

from llmd.api.messages import StageReport
from llmd.api.reports import Report
from llmd.engine.placement.prediction import Prediction
from llmd.server.models.served_model import ServedModel
from llmd.server.request_progress import RequestProgress, WaitingFor, why_queued
from llmd.server.request_record import RequestRecord
from llmd.server.tasks import OwnedTask
from llmd.server.telemetry.daemon_state import ModelState
from llmd.server.telemetry.device_facts import DeviceFacts
from llmd.server.telemetry.metrics import Metrics
from llmd.server.telemetry.model_facts import ModelFacts, Verdict
from llmd.server.telemetry.processor_use import OtherPrograms, OthersUse
from llmd.server.telemetry.stage_times import StageTime, stage_times
from llmd.server.telemetry.verdicts import verdicts

APART_S = 0.5
"""Time between two looks that are compared: rates over less are inaccurate."""
STALE_S = 10.0
"""Beyond this age, an earlier look says nothing about now."""
FACTS_S = 60.0
"""How long facts of devices are believed."""
FACTS_WAIT_S = 1.0
"""How long a state waits for facts of devices, whose probes may take seconds."""

Predicted = Mapping[str, Prediction]
"""Predictions by model; a model that has none is missing."""
Placed = dict[str, tuple[StageReport, ...]]


class _Look(Struct, frozen=True):
    at: float
    pid: int | None
    report: Report


class ModelStates:
    """Use on the event loop only."""

    def __init__(
        self,
        metrics: Metrics,
        served: Callable[[], Sequence[ServedModel]],
        device_facts: Callable[[], Awaitable[DeviceFacts]],
        predictions: Callable[[Sequence[ServedModel]], Awaitable[Predicted]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metrics = metrics
        self._served = served
        self._ask_facts = device_facts
        self._ask_predictions = predictions
        self._clock = clock
        self._looks: dict[str, tuple[_Look, ...]] = {}
        self._programs = OtherPrograms(os.getpid())
        self._others: OthersUse | None = None
        self._looked_at = -STALE_S
        self._facts = DeviceFacts()
        self._predicted: Predicted = {}
        self._asked_for: Placed = {}
        self._asking: OwnedTask | None = None
        self._asked_at = 0.0

    async def counters(self) -> list[ModelState]:
        """Return the states with the counters of the engines alone."""
        models = self._served()
        reports = await asyncio.gather(*(model.supervisor.report() for model in models))
        return [_state(model, report) for model, report in zip(models, reports, strict=True)]

    async def whole(self) -> list[ModelState]:
        """Return the states with verdicts. Records in each request how far it has come."""
        models = self._served()
        reports = await asyncio.gather(*(model.supervisor.report(sequences=True) for model in models))
        devices = await self._device_facts(models) if any(reports) else self._facts
        others = self._others_use()
        return [
            structs.replace(
                _state(model, report),
                verdicts=self._verdicts(model, report, devices, others),
                stage_times=self._stage_times(model, report),
            )
            for model, report in zip(models, reports, strict=True)
        ]

    def _stage_times(self, model: ServedModel, report: Report | None) -> tuple[StageTime, ...]:
        stages = model.loaded.stages if model.loaded else ()
        return stage_times(stages, self._predicted.get(model.name), report)

    def _verdicts(
        self, model: ServedModel, report: Report | None, devices: DeviceFacts, others: OthersUse | None
    ) -> tuple[Verdict, ...]:
        supervisor, leases = model.supervisor, model.leases
        requests = [record for record in self._metrics.live.values() if record.model == model.name]
        for record in requests:
            _note_queued(record, model.status, leases.waits_for)
        before, seconds = self._earlier(model, report)
        facts = ModelFacts(
            name=model.name,
            error=str(model.error) if model.error else "",
            loaded=model.loaded,
            slots=supervisor.slots,
            asked=supervisor.asked,
            lost=supervisor.lost_devices,
            prediction=self._predicted.get(model.name),
            waits_for=leases.waits_for,
            waiting=_waiting(requests),
            oldest_wait_s=_oldest_wait_s(requests, self._clock()),
            report=report,
            before=before,
            seconds=seconds,
            restarts=supervisor.restarts,
            last_end=supervisor.last_end,
            devices=devices,
            others=others,
        )
        return verdicts(facts)

    def _earlier(self, model: ServedModel, report: Report | None) -> tuple[Report | None, float]:
        """Return an earlier report of the same engine, and the seconds since; None: there is none."""
        if report is None:
            return None, 0.0
        now = _Look(self._clock(), model.supervisor.pid, report)
        looks = tuple(
            look
            for look in self._looks.get(model.name, ())
            if look.pid == now.pid and now.at - look.at < STALE_S
        )
        if not looks or now.at - looks[-1].at >= APART_S:
            self._looks[model.name] = (*looks[-1:], now)
        earlier = next((look for look in reversed(looks) if now.at - look.at >= APART_S), None)
        return (earlier.report, now.at - earlier.at) if earlier else (None, 0.0)

    def _others_use(self) -> OthersUse | None:
        passed = self._clock() - self._looked_at
        if passed >= APART_S:
            others = self._programs.look()
            self._others = others if passed < STALE_S else None
            self._looked_at = self._clock()
        return self._others

    async def _device_facts(self, models: Sequence[ServedModel]) -> DeviceFacts:
        """Return what is known of devices. Ask again after a while or when a model was placed."""
        now = self._clock()
        placed = {model.name: model.loaded.stages for model in models if model.loaded}
        is_old = now - self._asked_at > FACTS_S or not placed.items() <= self._asked_for.items()
        if self._asking is None or (is_old and await self._asking.join(0)):
            self._asking, self._asked_at = OwnedTask(self._ask(models), "facts of devices"), now
            self._asked_for = placed
        await self._asking.join(FACTS_WAIT_S)
        return self._facts

    async def _ask(self, models: Sequence[ServedModel]) -> None:
        self._facts = await self._ask_facts()
        self._predicted = await self._ask_predictions(models)


def _state(model: ServedModel, report: Report | None) -> ModelState:
    supervisor = model.supervisor
    waiting = report.waiting if report else supervisor.waiting
    if report is not None and report.sequences is not None:  # their progress is in the requests
        report = structs.replace(report, sequences=None)
    return ModelState(model.name, model.status, waiting, supervisor.pid, report)


def _note_queued(record: RequestRecord, status: str, waits_for: Sequence[str]) -> None:
    """Record what a request waits for that the engine does not have, also because it is being restarted."""
    if record.progress.state == "queued" or status == "loading":
        record.progress = RequestProgress(waiting_for=why_queued(status, waits_for))


def _waiting(requests: Sequence[RequestRecord]) -> Counter[WaitingFor]:
    return Counter(one.progress.waiting_for for one in requests if one.progress.waiting_for is not None)


def _oldest_wait_s(requests: Sequence[RequestRecord], now: float) -> float:
    waiting = [one for one in requests if not one.begun and one.progress.state in {"queued", "waiting"}]
    return max((now - one.started for one in waiting), default=0.0)
