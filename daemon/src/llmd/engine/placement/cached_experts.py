"""Whole models on graphics cards with memory for some of their experts: the others are in main memory.

A card reads them over the bus when a step uses them. That is another choice than those of the planner, which
places each part whole: with the processor's rates, or with weights that are copied in each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from llmd.api.messages import Load
from llmd.engine.placement.candidates import Candidate
from llmd.engine.placement.expert_share import share_on
from llmd.engine.placement.model_problem import ModelOnDevices, can_stream
from llmd.models.open_model import OpenModel
from llmd.placement.problem import cost_of


class CachedExperts(msgspec.Struct, frozen=True):
    """A card that has a whole model."""

    candidate: Candidate
    load: Load
    """With the device, and with the share of the experts for which it has room."""
    seconds: float
    """As `llmd.placement.problem.Choice.seconds`, for a text that uses all experts equally often."""


def cards_with_cached_experts(
    load: Load, model: OpenModel, candidates: Sequence[Candidate]
) -> Iterator[CachedExperts]:
    """Yield the cards that have room for a whole model but for some of its experts.

    Raises:
        LlmdError: the model cannot be loaded in the formats that are asked for.
    """
    for one in candidates:
        share = share_on(load, model, one) if can_stream(one) else 1.0
        if share >= 1.0:
            continue
        fewer = msgspec.structs.replace(load.undivided(), device=one.info.name, stages=(), expert_share=share)
        problem = ModelOnDevices(fewer, model, [one]).problem()
        choice = cost_of(problem, [0] * len(problem.parts))
        if choice is not None:
            yield CachedExperts(one, fewer, choice.seconds)
