from __future__ import annotations

import msgspec

from llmd.api import HIDDEN, Activate, Add, Op, Part
from llmd.api.plan import ModelPlan
from llmd.builtin.architectures.gemma4 import plan
from llmd.builtin.architectures.rwkv7 import plan as rwkv7
from llmd.models.dependent_parts import dependent_parts, part_runs
from llmd.testing.plans import TinyModel
from tests.golden.models.catalog import tiny_model


def planned(name: str) -> ModelPlan:
    return plan(tiny_model(name).config, None)


def test_most_models_have_none() -> None:
    found = TinyModel().plan()
    assert dependent_parts(found) == {}
    assert part_runs(found) == [(part, part + 1) for part in range(len(found.parts))]


def test_parts_between_keys_and_their_reader_stay_together() -> None:
    found = dependent_parts(planned("gemma4-shared"))
    assert list(found) == list(range(4, 12))
    assert found[4] == "layer 3 mixer reads the keys of layer 1"
    assert found[11] == "layer 5 mixer reads the keys of layer 2"


def test_a_layer_that_looks_up_tokens_stays_with_the_embedding() -> None:
    plan = planned("gemma4-per-layer")
    assert list(dependent_parts(plan)) == list(range(1, 11))
    assert part_runs(plan) == [(0, 11), *((part, part) for part in range(1, 11)), (11, 12)]


def test_layers_that_read_values_of_the_first_one_stay_with_it() -> None:
    plan = rwkv7(tiny_model("rwkv7").config, None)
    found = dependent_parts(plan)
    assert list(found) == [2, 3]
    assert found[3] == "layer 2 mixer reads first_values of layer 0 mixer"
    assert part_runs(plan) == [(0, 1), (1, 4), (2, 2), (3, 3), (4, 5)]


def test_a_reader_stays_with_the_last_part_before_it_that_writes_the_value() -> None:
    write, read = Activate(HIDDEN, "kept", "silu"), Add(HIDDEN, "kept", HIDDEN)
    ops: list[tuple[Op, ...]] = [(write,), (read,), (write, read), (read,)]
    parts = [Part(str(n), "ffn", n, some) for n, some in enumerate(ops)]
    plan = msgspec.structs.replace(TinyModel().plan(), parts=tuple(parts), carried=("kept",))
    assert dependent_parts(plan) == {1: "1 reads kept of 0", 3: "3 reads kept of 2"}
