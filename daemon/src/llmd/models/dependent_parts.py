"""Parts of a model that need more from the parts before them than their hidden states."""

from __future__ import annotations

from llmd.api.ops import Attention, Embed
from llmd.api.plan import ModelPlan


def dependent_parts(plan: ModelPlan) -> dict[int, str]:
    """Return the parts that must be on the device of the part before them, each with the reason.

    A layer may read the keys and values of an earlier one, which are on one device. Only the device of the
    first part has the tokens of a step. Values other than hidden states stay on the device that wrote them.
    """
    mixers = {part.layer: index for index, part in enumerate(plan.parts) if part.kind == "mixer"}
    writers: dict[str, int] = {}  # the last part so far that writes each value that later parts may read
    found: dict[int, str] = {}
    for index, part in enumerate(plan.parts):
        for op in part.ops:
            first, reason = index, ""
            if isinstance(op, Attention) and op.k is None:
                first, reason = mixers[op.layer], f"reads the keys of layer {op.layer}"
            elif isinstance(op, Embed):
                first, reason = 0, "looks up tokens, which only the device of the embedding has"
            elif carried := next((name for name in op.reads if writers.get(name, index) < index), None):
                first, reason = writers[carried], f"reads {carried} of {plan.parts[writers[carried]].name}"
            for between in range(first + 1, index + 1):
                found.setdefault(between, f"{part.name} {reason}")
            writers.update((name, index) for name in op.writes if name in plan.carried)
    return found


def part_runs(plan: ModelPlan) -> list[tuple[int, int]]:
    """Return for each part the range of it and the parts that depend on it; an empty one for those parts."""
    dependent = dependent_parts(plan)
    runs = []
    for first in range(len(plan.parts)):
        last = first
        while last == first or last in dependent:
            last += 1
        runs.append((first, first if first in dependent else last))
    return runs
