"""The mixed-integer program of a placement.

HiGHS solves it (Huangfu and Hall, "Parallelizing the dual revised simplex method", 2018), and also proves how
much faster another choice could be.
"""

from __future__ import annotations

import highspy
import numpy as np
from highspy.highs import highs_linear_expression, highs_var

from llmd.placement.problem import NOTHING, Choice, Cost, Plan, Problem, cost_of


class PlacementProgram:
    """The mixed-integer program of a problem.

    A variable is 1 for each part and the device it is on, and for each step from a device to the next one's.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._solver = highspy.Highs()
        self._solver.silent()
        self._taken: list[list[highs_linear_expression]] = [[] for _ in problem.budgets]
        self._parts = [
            [self._add(device, cost, whole=True) for device, cost in enumerate(costs)]
            for costs in problem.parts
        ]
        self._begin()
        for before, after in zip(self._parts, self._parts[1:], strict=False):
            self._connect(before, after)
        for part in problem.dependent:
            for before_on, on in zip(self._parts[part - 1], self._parts[part], strict=True):
                self._solver.addConstr(on == before_on)
        if problem.tied_bytes and len(self._parts) > 1:
            self._tie()
        self._use()
        for taken, budget in zip(self._taken, problem.budgets, strict=True):
            if taken:
                self._solver.addConstr(self._solver.qsum(taken) <= _unit(budget))

    def begin_with(self, choice: Choice) -> None:
        """Give the solver a choice that fits."""
        values = {
            on.index: float(device == chosen)
            for row, chosen in zip(self._parts, choice.devices, strict=True)
            for device, on in enumerate(row)
        }
        indices, ones = np.array(list(values), np.int32), np.array(list(values.values()))
        self._solver.setSolution(len(values), indices, ones)

    def solve(self, tolerance: float, budget_s: float) -> bool:
        """Search; return whether a choice was found or it is certain that none fits."""
        options = {"threads": 1, "mip_rel_gap": tolerance, "time_limit": budget_s}
        for name, value in options.items():
            self._solver.setOptionValue(name, value)
        self._solver.minimize()
        return self._found or self._solver.getModelStatus() != highspy.HighsModelStatus.kTimeLimit

    def plan(self) -> Plan | None:
        """Return the best choice that was found."""
        if not self._found:
            return None
        rows = [self._solver.variableValues(on) for on in self._parts]
        devices = [max(self._problem.devices, key=row.__getitem__) for row in rows]
        choice = cost_of(self._problem, devices)
        assert choice is not None, "variables of devices that cannot run a part are 0"
        return Plan(choice, min(self._solver.getInfo().mip_dual_bound, choice.seconds))

    @property
    def _found(self) -> bool:
        status = self._solver.getInfo().primal_solution_status
        return bool(status == int(highspy.SolutionStatus.kSolutionStatusFeasible))

    def _add(self, device: int, cost: Cost | None, *, seconds: float = 0.0, whole: bool = False) -> highs_var:
        """Add a variable that costs this much if it is 1; without a cost, it is 0."""
        most = 0.0 if cost is None else 1.0
        cost = cost or NOTHING
        kind = highspy.HighsVarType.kInteger if whole else highspy.HighsVarType.kContinuous
        variable: highs_var = self._solver.addVariable(0.0, most, cost.seconds + seconds, kind)
        if cost.num_bytes:
            self._taken[self._problem.memories[device]].append(variable * _unit(cost.num_bytes))
        if cost.host_bytes and self._problem.host is not None:
            self._taken[self._problem.host].append(variable * _unit(cost.host_bytes))
        return variable

    def _begin(self) -> None:
        """Put the first part on one device, which costs its first stage."""
        for device, (on, stage) in enumerate(zip(self._parts[0], self._problem.stages, strict=True)):
            self._solver.addConstr(self._add(device, stage) == on)
        self._solver.addConstr(self._solver.qsum(self._parts[0]) == 1)

    def _connect(self, before: list[highs_var], after: list[highs_var]) -> None:
        """Let a path go on from each part that it reaches to the next part, on the same device or another."""
        problem, solver = self._problem, self._solver
        steps = [
            [
                self._add(device, NOTHING)
                if not problem.is_border(other, device)
                else self._add(device, problem.stages[device], seconds=problem.moves[other][device])
                for device in problem.devices
            ]
            for other in problem.devices
        ]
        for on, leaving in zip(before, steps, strict=True):
            solver.addConstr(solver.qsum(leaving) == on)
        for on, arriving in zip(after, zip(*steps, strict=True), strict=True):
            solver.addConstr(solver.qsum(arriving) == on)

    def _tie(self) -> None:
        """Give back the bytes that the last part shares with the first one."""
        for device, num_bytes in enumerate(self._problem.tied_bytes):
            tied = self._add(device, Cost(0.0, -num_bytes))
            self._solver.addConstr(tied <= self._parts[0][device])
            self._solver.addConstr(tied <= self._parts[-1][device])

    def _use(self) -> None:
        """Let devices with parts cost what they cost once; of a pair of rivals, let only one have parts."""
        problem = self._problem
        involved = {device for pair in problem.rivals for device in pair}
        involved |= {device for device in problem.devices if problem.use(device) != NOTHING}
        used = {device: self._add(device, problem.use(device)) for device in involved}
        for device, using in used.items():
            for on in self._parts:
                self._solver.addConstr(on[device] <= using)
        for one, other in problem.rivals:
            self._solver.addConstr(used[one] + used[other] <= 1)


def _unit(num_bytes: int) -> float:
    """Return bytes in a unit that suits the solver, which works best with numbers near 1."""
    return num_bytes / (1 << 20)
