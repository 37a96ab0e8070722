"""Fixtures: programs of the small model."""

from __future__ import annotations

import pytest

from llmd.api import Program
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel


@pytest.fixture
def program() -> Program:
    plan = TinyModel().plan()
    return lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")


@pytest.fixture
def hybrid() -> Program:
    """Return a program with full attention in group 0 and states in group 1."""
    plan = TinyModel(hybrid=True, window=None).plan()
    return lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
