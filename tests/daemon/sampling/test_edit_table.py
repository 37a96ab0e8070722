from __future__ import annotations

from llmd.sampling.edit_table import Edits, EditTable


def listed(edits: Edits) -> dict[int, tuple[float, float]]:
    ids, factors, biases = (part.tolist() for part in edits)
    assert len(set(ids)) == len(ids)
    return {token: (factor, bias) for token, factor, bias in zip(ids, factors, biases, strict=True)}


def test_the_last_edit_of_a_token_holds() -> None:
    table = EditTable()
    for token in range(100):
        table.set(token, 1.5, float(token))
    table.set(7, 2.0, -1.0)
    expected = {token: (1.5, float(token)) for token in range(100)} | {7: (2.0, -1.0)}
    assert listed(table.row({})) == expected


def test_what_passes_holds_for_one_row() -> None:
    table = EditTable()
    table.set(3, 2.0, 1.0)
    assert listed(table.row({3: -0.5, 9: 4.0})) == {3: (2.0, 0.5), 9: (1.0, 4.0)}
    assert listed(table.row({})) == {3: (2.0, 1.0)}
