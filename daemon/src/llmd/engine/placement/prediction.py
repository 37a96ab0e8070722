"""What the stages of a loaded model should take, by the measured rates of their devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import structs

from llmd.api.messages import Load, StageReport, StageSpec
from llmd.api.plugins import Architecture
from llmd.engine.placement.candidates import Candidate
from llmd.engine.placement.default_quant import with_default_quant
from llmd.engine.placement.model_problem import ModelOnDevices
from llmd.engine.placement.stages import place_parts
from llmd.models.open_model import open_model


def predicted_seconds(
    load: Load,
    architectures: Mapping[str, Architecture],
    stages: Sequence[StageReport],
    candidates: Mapping[str, Candidate],
) -> tuple[float, ...]:
    """Return the seconds of a step of one sequence in each stage; nothing if that is not known.

    ``stages`` are those that were built, ``candidates`` the measured devices by name.

    Raises:
        LlmdError: the files of the model have changed and are no model any more.
    """
    names = list(dict.fromkeys(stage.device for stage in stages))
    if not stages or not candidates.keys() >= set(names) or any(stage.streamed_bytes for stage in stages):
        return ()
    specs = tuple(StageSpec(one.device, one.part_names[0], one.part_names[-1]) for one in stages)
    model = open_model(Path(load.directory), architectures, load.context_len)
    with closing(model.checkpoint):
        asked, opened = with_default_quant(structs.replace(load, stages=specs, gpu_layers=None), model)
        on_devices = ModelOnDevices(asked, opened, [candidates[name] for name in names])
        return on_devices.token_seconds(place_parts(asked, opened.plan))
