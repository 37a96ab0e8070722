from __future__ import annotations

import numpy as np

from llmd.api import HIDDEN, Embed, Head, ModelPlan, Norm, Part, TensorRef, Weight
from llmd.builtin.reference.device import ReferenceDevice
from llmd.models.headless import without_head
from llmd.testing.plans import TinyModel
from llmd.testing.runs import run
from llmd.testing.sources import RandomSource
from llmd.testing.workload import Workload, all_at_once

PLAN = TinyModel().plan()
TABLE = TensorRef("table", (5, 4))


def test_what_the_head_would_read_leaves_instead() -> None:
    last = without_head(PLAN).parts[-1]
    assert (last.kind, last.layer) == ("norm", None)
    (norm,) = last.ops
    assert isinstance(norm, Norm)
    assert (norm.x, norm.out, norm.weight) == (HIDDEN, HIDDEN, TensorRef("norm", (40,)))


def test_the_head_of_what_leaves_gives_the_logits() -> None:
    workloads = (
        Workload("w", plan, 0, len(plan.parts), ((5, 9, 2, 7),)) for plan in (PLAN, without_head(PLAN))
    )
    logits, hidden = (run(ReferenceDevice(), w, all_at_once(w)).rows for w in workloads)
    weight = np.asarray(RandomSource().read(Weight(TensorRef("head", (131, 40)), "f32")).data, np.float64)
    for place, row in hidden.items():
        expected = 30 * np.tanh(row @ weight.T * 0.5 / 30)
        np.testing.assert_allclose(logits[place], expected, rtol=1e-4, atol=1e-5)


def test_a_plan_without_a_head_stays_as_it_is() -> None:
    plan = without_head(PLAN)
    assert without_head(plan) is plan


def test_no_part_is_left_of_a_head_that_reads_the_last_layer() -> None:
    parts = (
        Part("embed", "embed", None, (Embed(HIDDEN, TABLE),)),
        Part("head", "head", None, (Head(HIDDEN, TABLE),)),
    )
    assert without_head(ModelPlan("t", 4, 5, 8, 8, (), parts)).parts == parts[:1]
