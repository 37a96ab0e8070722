from __future__ import annotations

import pytest

from llmd.models.formats.row_chunks import CHUNK_ELEMENTS, for_row_chunks


@pytest.mark.parametrize(("num_rows", "row_len"), [(0, 8), (1, 8), (100, CHUNK_ELEMENTS // 7), (3, 0)])
def test_every_row_is_in_one_chunk(num_rows: int, row_len: int) -> None:
    seen: list[int] = []
    for_row_chunks(num_rows, row_len, lambda rows: seen.extend(range(rows.start, rows.stop)))
    assert sorted(seen) == list(range(num_rows))


def test_chunks_are_small_but_have_a_row() -> None:
    sizes: list[int] = []
    for_row_chunks(10, 2 * CHUNK_ELEMENTS, lambda rows: sizes.append(rows.stop - rows.start))
    assert sizes == [1] * 10


def test_chunks_have_as_many_elements_as_are_asked_for() -> None:
    sizes: list[int] = []
    for_row_chunks(10, 100, lambda rows: sizes.append(rows.stop - rows.start), elements=400)
    assert sorted(sizes) == [2, 4, 4]


def test_what_a_chunk_raises_is_raised() -> None:
    def fail(rows: slice) -> None:
        if rows.start > 1:
            raise ArithmeticError("too large")

    with pytest.raises(ArithmeticError, match="too large"):
        for_row_chunks(9, CHUNK_ELEMENTS, fail)
