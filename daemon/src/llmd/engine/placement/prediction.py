"""What a loaded model should take by the measured rates of its devices, and what it would take on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct, structs

from llmd.api.messages import Load, StageReport, StageSpec
from llmd.api.plugins import Architecture
from llmd.engine.placement.candidates import Candidate
from llmd.engine.placement.default_quant import with_default_quant
from llmd.engine.placement.model_problem import ModelOnDevices
from llmd.engine.placement.stages import StageParts, lower_stage, place_parts, refuses
from llmd.models.open_model import OpenModel, open_model


class WholeModel(Struct, frozen=True):
    """A model on one device alone, whatever memory is free there."""

    step_s: float
    """Seconds of a step of one sequence."""
    num_bytes: int
    """Weights, keys and values, and step buffers."""


class Prediction(Struct, frozen=True):
    """Times of a loaded model by the rates of the devices."""

    stages_s: tuple[float, ...]
    """Seconds of a step of one sequence in each stage."""
    alone: Mapping[str, WholeModel] = {}
    """The model on each measured device that can run all of it, by name."""

    @property
    def step_s(self) -> float:
        """Seconds of a step of one sequence in all stages."""
        return sum(self.stages_s)


def predict(
    load: Load,
    architectures: Mapping[str, Architecture],
    stages: Sequence[StageReport],
    candidates: Mapping[str, Candidate],
) -> Prediction | None:
    """Return the times of a loaded model; None if they are not known.

    ``stages`` are those that were built, ``candidates`` the measured devices by name.

    Raises:
        LlmdError: the files of the model have changed and are no model any more.
    """
    names = {stage.device for stage in stages}
    if not stages or not candidates.keys() >= names:
        return None
    if any(stage.streamed_bytes or stage.absent_bytes for stage in stages):
        return None
    specs = tuple(StageSpec(one.device, one.part_names[0], one.part_names[-1]) for one in stages)
    model = open_model(Path(load.directory), architectures, load.context_len, adapters=load.adapters)
    with closing(model.checkpoint):
        asked, opened = with_default_quant(structs.replace(load.undivided(), stages=specs), model)
        able = {
            name: one for name, one in candidates.items() if name in names or _can_run(asked, opened, one)
        }
        on_devices = ModelOnDevices(asked, opened, list(able.values()))
        num_parts = len(opened.plan.parts)
        alone = {
            name: WholeModel(
                sum(on_devices.token_seconds([StageParts(name, 0, num_parts)])),
                sum(on_devices.sizes(number, 0, num_parts).values()),
            )
            for number, (name, one) in enumerate(able.items())
            if _can_run(asked, opened, one)
        }
        return Prediction(on_devices.token_seconds(place_parts(asked, opened.plan)), alone)


def _can_run(load: Load, model: OpenModel, candidate: Candidate) -> bool:
    """Whether a device can run all parts of a model."""
    whole = StageParts(candidate.info.name, 0, len(model.plan.parts))
    return not refuses(load, candidate.info, lower_stage(load, model, candidate.info, whole))
