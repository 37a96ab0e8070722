"""Splitting a model among devices, and the memory that a step needs on each."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.device import DeviceInfo
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
        ConfigError: they overlap, leave a gap, or exceed the model.
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
            hint="assign each layer to a device",
        )


def part_range(plan: ModelPlan, spec: StageSpec) -> tuple[int, int]:
    """Return the part range of a stage: the first stage also has the embedding, the last also the head."""
    start, stop = plan.layer_parts(spec.first, spec.last)
    return (0 if spec.first == 0 else start), (len(plan.parts) if spec.last == plan.num_layers else stop)


def flight_depth(devices: Sequence[DeviceInfo]) -> tuple[int, int]:
    """Return the steps in flight and the micro-batches for stages on these devices.

    Several stages work on as many steps at once, each with a share of the sequences. A single stage runs all
    sequences in each step; if its device queues steps, the next step is there before the device needs it.
    """
    count = len({device.name for device in devices})
    if count > 1:
        return count, count
    return (2 if devices[0].queues else 1), 1


def most_rows(load: Load, model: OpenModel) -> int:
    """Return the largest number of rows in a step."""
    if model.embedding is None:
        return load.slots + load.chunk_len
    return EmbeddingLimits.of(model.plan, load.chunk_len).max_rows


def step_bytes(program: Program, max_rows: int) -> int:
    """Return the bytes of the rows of one step, without other buffers of the device or further steps."""
    return max_rows * sum(program.slot_widths) * FLOAT_BYTES
