"""The suite passes on the reference and finds what is wrong with a device."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import Refusal, StepResult, Ticket
from llmd.builtin.reference import numerics
from llmd.builtin.reference.device import ReferenceDevice, ReferenceParts
from llmd.builtin.reference.stage import ReferenceStage
from llmd.testing import conformance
from llmd.testing.conformance import all_cases, check_accuracy, check_device, check_exactness
from llmd.testing.workload import Workload


def cases() -> dict[str, Workload]:
    return {case.name: case for case in all_cases()}


def test_every_case_has_its_own_name() -> None:
    assert len(cases()) == len(all_cases())


def test_every_op_of_the_set_has_a_case() -> None:
    kinds = {op.kind for case in all_cases() for part in case.plan.parts for op in part.ops}
    assert kinds == set(ReferenceDevice().info.ops)


@pytest.mark.parametrize("name", sorted(cases()))
def test_reference_is_row_exact(name: str) -> None:
    problems = [result for result in check_exactness(ReferenceDevice(), cases()[name]) if result.problem]
    assert problems == []


@pytest.mark.parametrize(
    ("case", "function"),
    [
        ("norm/rms", "rms_norm"),
        ("rope/half", "rotate"),
        ("attention/gqa-f32", "attend"),
        ("head/plain", "soft_cap"),
    ],
)
def test_a_wrong_op_is_found(monkeypatch: pytest.MonkeyPatch, case: str, function: str) -> None:
    right, running = getattr(numerics, function), []

    class Wrong(ReferenceDevice):
        """Computes one op 0.1 % off."""

        def load(self, *arguments: Any) -> ReferenceParts:
            running.append(True)
            return super().load(*arguments)

    def off(*args: Any, **kwargs: Any) -> Any:
        return right(*args, **kwargs) * np.float32(1.001 if running else 1.0)

    class Right(ReferenceDevice):
        def load(self, *arguments: Any) -> ReferenceParts:
            running.clear()
            return super().load(*arguments)

    monkeypatch.setattr(numerics, function, off)
    monkeypatch.setattr(conformance, "ReferenceDevice", Right)
    assert check_accuracy(Right(), cases()[case]).problem == ""
    assert "NMSE" in check_accuracy(Wrong(), cases()[case]).problem


@pytest.mark.parametrize(
    "name", ["edited_logsumexp", "edited_entropy", "edited_deviation", "num_allowed", "target_raw"]
)
def test_a_wrong_description_of_a_row_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    right = ReferenceStage.wait

    def off(stage: ReferenceStage, ticket: Ticket, timeout_s: float) -> StepResult:
        result = right(stage, ticket, timeout_s)
        found = getattr(result, name)
        return msgspec.structs.replace(result, **{name: (found * np.float32(1.1) + 1).astype(found.dtype)})

    monkeypatch.setattr(ReferenceStage, "wait", off)
    problem = check_accuracy(ReferenceDevice(), cases()["head/plain-edits-masks"]).problem
    assert problem == f"{name} does not follow from the logits"


def test_a_device_that_depends_on_the_batch_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = numerics.rms_norm

    def batch_dependent(x: NDArray[np.float32], gain: NDArray[np.float64], eps: float) -> NDArray[np.float32]:
        out = right(x, gain, eps)
        return np.nextafter(out, np.float32(np.inf)) if len(x) > 1 else out

    monkeypatch.setattr(numerics, "rms_norm", batch_dependent)
    results = list(check_exactness(ReferenceDevice(), cases()["norm/rms"]))
    assert all("rows differ" in result.problem for result in results)


def test_a_format_that_a_device_lacks_is_named() -> None:
    device = ReferenceDevice()
    device.info = msgspec.structs.replace(device.info, formats=("f32",))
    result = next(iter(check_device(device, (cases()["linear/q8"],))))
    assert "q8" in result.problem


def test_what_a_device_refuses_is_a_failed_case_with_its_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    device = ReferenceDevice()
    monkeypatch.setattr(device, "check", lambda _program: [Refusal("op rope", "not written yet")])
    (result,) = check_device(device, (cases()["rope/half"],))
    assert result.problem == "op rope: not written yet"
