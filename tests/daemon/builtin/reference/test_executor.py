"""A weight that is both looked up and multiplied by (tied embeddings) serves both."""

from __future__ import annotations

import numpy as np

from llmd.api import HIDDEN, Embed, Head, ModelPlan, Part, StageLimits, Step, TensorRef, Weight, WeightData
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.batch import select_rows
from llmd.models.lowering import lower

TABLE = TensorRef("table", (3, 2))
VALUES = np.array([[1, 0], [0, 2], [3, 3]], np.float32)


class OneTensor:
    def read(self, weight: Weight) -> WeightData:
        return WeightData("f32", VALUES)


def test_tied_embedding_and_head() -> None:
    parts = (
        Part("embed", "embed", None, (Embed(HIDDEN, TABLE, scale=2.0),)),
        Part("head", "head", None, (Head(HIDDEN, TABLE),)),
    )
    plan = ModelPlan("tied", 2, 3, 16, 16, (), parts)
    program = lower(plan, 0, 2, format_of=lambda _kind, _ref: "f32")
    stage = ReferenceDevice().load(program, OneTensor(), lambda _d, _t: None).stage({}, StageLimits(4, 1, 4))
    two = np.array([0, 1], np.int32)
    step = Step(np.array([2, 1], np.int32), two, np.array([0, 2], np.int32), (), np.zeros((0, 3), np.int32))
    ticket = stage.submit(step, None, select_rows(two))
    assert stage.raw_rows(ticket, two).tolist() == (2 * VALUES[[2, 1]] @ VALUES.T).tolist()
