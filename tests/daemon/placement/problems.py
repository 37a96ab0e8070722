"""Problems for the planner, and their best choice by trying every one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import strategies as st

from llmd.placement.problem import Choice, Cost, Problem, cost_of, fits

MIB = 1 << 20
NO_STAGE = Cost(0.0, 0)


def problem(
    parts: Sequence[Sequence[Cost | None]], *budgets: int, move: float = 0.0, stage: Cost = NO_STAGE
) -> Problem:
    """Return a problem in which each device has a memory of its own."""
    devices = range(len(budgets))
    return Problem(
        memories=tuple(devices),
        budgets=tuple(budget * MIB for budget in budgets),
        parts=tuple(map(tuple, parts)),
        stages=(stage,) * len(budgets),
        moves=tuple(tuple(move * (a != b) for b in devices) for a in devices),
    )


def cost(seconds: float, mib: int) -> Cost:
    return Cost(seconds, mib * MIB)


seconds = st.integers(0, 10_000).map(lambda count: count / 1000)
costs = st.builds(
    lambda seconds, mib, host_mib: Cost(seconds, mib * MIB, host_mib * MIB),
    seconds,
    st.integers(0, 20),
    st.sampled_from([0, 0, 1, 10]),
)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Models of at most six parts on three devices, whose memories are shared, scarce or large."""
    count = draw(st.integers(1, 3))
    memories = draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    kinds = draw(
        st.lists(st.tuples(*[st.one_of(st.none(), costs)] * count), min_size=1, max_size=3),
        label="kinds of parts",
    )
    parts = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=6))
    moves = [[0.0 if a == b else draw(seconds) for b in range(count)] for a in range(count)]
    # Tied bytes belong to both ends.
    tied = [
        min(first.num_bytes if first else 0, last.num_bytes if last else 0) // MIB
        for first, last in zip(parts[0], parts[-1], strict=True)
    ]
    return Problem(
        tuple(memories),
        tuple(MIB * draw(st.integers(0, 60)) for _ in range(2)),
        tuple(parts),
        tuple(draw(costs) for _ in range(count)),
        tuple(map(tuple, moves)),
        tuple(MIB * draw(st.integers(0, most)) for most in tied) if draw(st.booleans()) else (),
        tuple(pair for pair in itertools.combinations(range(count), 2) if not draw(st.integers(0, 3))),
        draw(st.sampled_from([None, 0, 1])),
        tuple(draw(st.integers(0, 1)) for _ in range(count)) if draw(st.booleans()) else (),
        tuple(draw(costs) for _ in range(count)) if draw(st.booleans()) else (),
    )


def best_of_all(given: Problem) -> Choice | None:
    """Try every choice."""
    found = (cost_of(given, devices) for devices in itertools.product(given.devices, repeat=len(given.parts)))
    fitting = [choice for choice in found if choice and fits(given, choice)]
    return min(fitting, key=lambda choice: choice.seconds, default=None)
