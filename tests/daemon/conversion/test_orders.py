"""Rows and columns in the order of the other form."""

from __future__ import annotations

import msgspec
import numpy as np

from llmd.conversion.orders import HeadOrder, Reorder, find_orders
from tests.daemon.conversion.test_tensor_map import plan


def test_halves_of_a_head_become_neighbours_and_come_apart_again() -> None:
    to_pairs = Reorder(heads=2, head_dim=7, rotary_dim=6, interleaves=True)
    assert to_pairs.order().tolist() == [0, 3, 1, 4, 2, 5, 6, 7, 10, 8, 11, 9, 12, 13]
    to_halves = msgspec.structs.replace(to_pairs, interleaves=False)
    rows = np.arange(14)
    assert np.array_equal(rows[to_pairs.order()][to_halves.order()], rows)


def test_heads_that_share_a_key_head_come_apart_and_together_again() -> None:
    tiles = HeadOrder(heads=6, key_heads=2, dim=2, tiles=True)
    assert tiles.order().tolist() == [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]
    back = msgspec.structs.replace(tiles, tiles=False)
    assert np.array_equal(np.arange(12)[tiles.order()][back.order()], np.arange(12))


def test_every_value_with_heads_of_values_is_found() -> None:
    part, form = (plan("qwen3-5", **fields).parts[1] for fields in ({}, {"tiled_heads": True}))
    found = find_orders(list(zip(part.ops, form.ops, strict=True)))
    values, numbers = HeadOrder(4, 2, 24, tiles=True), HeadOrder(4, 2, 1, tiles=True)
    assert found.outputs == {"v": values, "z": values, "decay": numbers, "beta": numbers}
    assert found.inputs == {"y": values}
    assert found.fields == {"v_taps": values, "rates": numbers, "bias": numbers}


def test_ops_that_are_the_same_change_no_order() -> None:
    ops = plan("qwen3-5").parts[1].ops
    found = find_orders([(op, op) for op in ops])
    assert {pair for op in ops for pair in found.of_tensors(op)} == {(None, None)}
