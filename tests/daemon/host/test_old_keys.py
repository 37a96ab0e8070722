"""The JSON of plugins and devices keeps the keys of earlier versions."""

from __future__ import annotations

from llmd.host.old_keys import with_old_keys


def test_old_keys_have_the_values_of_the_new_ones() -> None:
    row = {"name": "x", "phase": "probe", "fix": "update it"}
    assert with_old_keys(row) == {**row, "grain": "probe", "mend": "update it"}


def test_a_row_without_such_keys_gets_none() -> None:
    assert with_old_keys({"name": "x"}) == {"name": "x"}
