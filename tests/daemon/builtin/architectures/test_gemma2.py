from __future__ import annotations

from llmd.api import Attention, Head
from llmd.builtin.architectures.gemma2 import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("gemma2").config


def test_even_layers_have_the_window() -> None:
    groups = plan(CONFIG, None).groups
    assert [(group.window, group.layers) for group in groups] == [(12, (0, 2)), (None, (1,))]


def test_scores_and_logits_are_capped() -> None:
    made = plan(CONFIG, None)
    attention = next(op for op in made.parts[1].ops if isinstance(op, Attention))
    head = made.parts[-1].ops[-1]
    assert isinstance(head, Head)
    assert (attention.softcap, head.softcap) == (6.0, 4.0)


def test_caps_that_are_not_stated_are_those_of_the_family() -> None:
    unsaid = {name: value for name, value in CONFIG.items() if not name.endswith("softcapping")}
    attention = next(op for op in plan(unsaid, None).parts[1].ops if isinstance(op, Attention))
    assert attention.softcap == 50.0
