"""Stages of the small model on the reference backend."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llmd.api import StageLimits
from llmd.builtin.reference.device import ReferenceDevice
from llmd.builtin.reference.stage import ReferenceStage
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource


@pytest.fixture
def make_stage() -> Callable[..., ReferenceStage]:
    def make(first: int = 0, last: int = 10, taps: tuple[int, ...] = ()) -> ReferenceStage:
        program = lower(TinyModel().plan(), first, last, format_of=lambda _kind, _ref: "f32", taps=taps)
        parts = ReferenceDevice().load(program, RandomSource(), lambda _done, _total: None)
        return parts.stage({0: 8, 1: 8}, StageLimits(32, 2, 4, "f32"))

    return make
