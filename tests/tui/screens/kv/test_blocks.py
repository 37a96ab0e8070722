from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmd_tui.screens.kv.blocks import STATES, Group, blocks_per_cell, cells

RUNS = st.lists(st.tuples(st.sampled_from(STATES), st.integers(1, 9)), max_size=20)


def group(*runs: tuple[str, int]) -> Group:
    counts = {state: sum(count for one, count in runs if one == state) for state in STATES}
    return Group("all", 16, sum(counts.values()), map=runs, **counts)


def test_a_cell_shows_the_most_interesting_of_its_blocks() -> None:
    mixed = group(("free", 3), ("cached", 1), ("used", 1), ("free", 2), ("shared", 1))
    assert list(cells(mixed, 8)) == ["free", "free", "free", "cached", "used", "free", "free", "shared"]
    assert list(cells(mixed, 4)) == ["free", "cached", "used", "shared"]
    assert list(cells(mixed, 1)) == ["shared"]


def test_a_state_of_a_newer_daemon_counts_as_free() -> None:
    assert list(cells(Group(0, 16, 2, map=[("frozen", 2)]), 2)) == ["free", "free"]


@given(RUNS, st.integers(1, 50))
def test_all_blocks_fit(runs: list[tuple[str, int]], room: int) -> None:
    pool = group(*runs)
    shown = list(cells(pool, room))
    assert len(shown) <= room
    assert len(shown) == -(-pool.blocks // blocks_per_cell(pool.blocks, room))
    assert ("shared" in shown) == bool(pool.count("shared"))
