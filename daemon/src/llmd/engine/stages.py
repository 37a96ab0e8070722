"""How a model is divided among devices, and what a step takes on each."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.errors import ConfigError
from llmd.api.messages import Load, StageSpec
from llmd.api.plan import ModelPlan
from llmd.api.program import Program
from llmd.engine.embedding_limits import EmbeddingLimits
from llmd.models.open_model import OpenModel

FLOAT_BYTES = 4


def check_stages(stages: Sequence[StageSpec], num_layers: int) -> None:
    """Check that the stages cover layers ``0 .. num_layers - 1`` in order.

    Raises:
        ConfigError: they overlap, leave a gap, or go beyond the model.
    """
    reached = 0
    for spec in stages:
        if spec.first != reached or spec.last <= spec.first:
            raise ConfigError(
                f"--split: layers {spec.first}-{spec.last - 1} on {spec.device} do not follow layer {reached - 1}",
                hint=f"name the layers 0-{num_layers - 1} in order, each once",
            )
        reached = spec.last
    if reached != num_layers:
        raise ConfigError(
            f"--split ends with layer {reached - 1}, the model has layers 0-{num_layers - 1}",
            hint="give every layer a device",
        )


def part_range(plan: ModelPlan, spec: StageSpec) -> tuple[int, int]:
    """Parts of a stage: the first stage also embeds, the last also has the head."""
    start, stop = plan.layer_parts(spec.first, spec.last)
    return (0 if spec.first == 0 else start), (len(plan.parts) if spec.last == plan.num_layers else stop)


def most_rows(load: Load, model: OpenModel) -> int:
    """The most rows that a step has."""
    if model.embedding is None:
        return load.slots + load.chunk_len
    return EmbeddingLimits.of(model.plan, load.chunk_len).max_rows


def step_bytes(program: Program, max_rows: int) -> int:
    """Bytes of the rows of one step. What a device needs beside them, or for further steps on their way, it alone knows."""
    return max_rows * sum(program.slot_widths) * FLOAT_BYTES
