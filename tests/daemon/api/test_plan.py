from __future__ import annotations

from llmd.api import KVGroup
from llmd.testing.encoder_plan import TinyEncoder
from llmd.testing.plans import TinyModel

PLAN = TinyModel(layers=3).plan()


def test_layers_are_counted_and_mapped_to_parts() -> None:
    assert PLAN.num_layers == 3
    assert len(PLAN.parts) == 8
    assert PLAN.layer_parts(0, 3) == (1, 7)
    assert PLAN.layer_parts(1, 2) == (3, 5)


def test_each_tensor_is_listed_once_in_order_of_use() -> None:
    names = [(ref.name, ref.rows) for ref in PLAN.tensor_refs()]
    assert len(names) == len(set(names))
    assert names[0] == ("embed", None)
    assert names[-1] == ("head", None)


def test_token_types_are_the_rows_of_their_table() -> None:
    assert [TinyEncoder().plan().num_token_types, TinyModel().plan().num_token_types] == [2, 1]


def test_values_are_as_wide_as_keys_unless_stated() -> None:
    assert [(group.key_dim, group.value_dim) for group in PLAN.groups] == [(12, 12), (12, 12)]
    latent = KVGroup(0, None, 1, 40, (0,), kind="latent", value_dim=32)
    assert (latent.key_dim, latent.value_dim) == (40, 32)
