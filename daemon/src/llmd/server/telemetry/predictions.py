"""Predicted times of the models that run, kept because finding them reads files."""

from __future__ import annotations

import logging

from llmd.api.errors import LlmdError
from llmd.api.messages import Load, StageReport
from llmd.engine.placement.candidates import Candidate
from llmd.engine.placement.prediction import Prediction, predict
from llmd.host.plugin_host import PluginHost
from llmd.server.telemetry.device_facts import Known

logger = logging.getLogger(__name__)

Key = tuple[str, tuple[StageReport, ...]]
MOST_KEPT = 64


class Predictions:
    """Times of models by the rates of devices, which ``known`` has."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._found: dict[Key, Prediction] = {}

    def of(self, host: PluginHost, load: Load, stages: tuple[StageReport, ...]) -> Prediction | None:
        """Return the prediction of a model; None if its devices were not measured."""
        key = (load.directory, stages)
        if key not in self._found:
            candidates = {
                device.info.name: Candidate(device.info, profile, 0)
                for device in host.devices()
                if device.ok and (profile := self._known(device))
            }
            try:
                found = predict(load, host.architectures(), stages, candidates)
            except LlmdError as error:
                logger.info("not_predicted", extra={"directory": load.directory, "reason": str(error)})
                found = None
            if found is None:
                return None
            if len(self._found) == MOST_KEPT:
                self._found.clear()
            self._found[key] = found
        return self._found[key]
