from __future__ import annotations

import pytest

from llmd.builtin.reference import numerics
from llmd.builtin.reference.device import ReferenceDevice
from llmd.testing.trial import try_device


def test_the_reference_passes() -> None:
    assert try_device(ReferenceDevice()) == []


def test_a_device_that_computes_wrongly_gets_a_sentence_for_each_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = iter(range(1 << 30))
    right = numerics.attend
    monkeypatch.setattr(numerics, "attend", lambda *args: right(*args) * (1 + 1e-3 * (next(calls) % 2)))
    problems = try_device(ReferenceDevice())
    assert any(problem.startswith("attention/window-f32") for problem in problems)
