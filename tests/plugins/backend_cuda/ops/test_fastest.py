"""Classes of rows."""

from __future__ import annotations

from llmd_backend_cuda.ops.fastest import ROW_CLASSES, row_class


def test_rows_belong_to_the_smallest_class_that_has_them() -> None:
    found = [row_class(rows) for rows in (1, 8, 9, 16, 33, 64, 65, 512, 4096)]
    assert found == [8, 8, 16, 16, 64, 64, 512, 512, 512]
    assert set(found) <= set(ROW_CLASSES)
