"""The closed form of the null device's rows agrees with its logits."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from llmd.api import Draws, Selection, StepResult
from llmd.api.candidates import OutputRows
from llmd.api.draws import GREEDY, HOST, SAMPLED
from llmd.engine.steps.batch import select_rows
from llmd.testing.null_rows import STRIDE, NullRows, null_logits

COUNT = 200
POSITIONS = np.arange(3, 3 + COUNT, dtype=np.int32)


def selection(**changes: Any) -> Selection:
    temperatures = np.linspace(0.2, 2.0, COUNT).astype(np.float32)
    selected = select_rows(np.arange(COUNT, dtype=np.int32), temperatures, raw_top=3)
    return msgspec.structs.replace(selected, **changes)


def draws(temperature: float, top_k: float = np.inf, top_p: float = 1.0, min_p: float = 0.0) -> Draws:
    kinds = np.full(COUNT, SAMPLED, np.int8)
    kinds[::7], kinds[::11] = GREEDY, HOST
    with np.errstate(divide="ignore"):
        row = (temperature, 1.0, top_k, top_p, np.log(min_p), -np.inf)
    return Draws(
        kinds=kinds,
        table=np.tile(row, (COUNT, 1)),
        seeds=np.arange(COUNT, dtype=np.uint64),
        positions=POSITIONS.astype(np.uint64) + 1,
        choices=np.zeros(COUNT, np.uint64),
        token_only=np.zeros(COUNT, np.bool_),
    )


def test_the_best_token_follows_the_position() -> None:
    logits = null_logits(POSITIONS, 131)
    assert logits.argmax(axis=1).tolist() == [STRIDE * position % 131 for position in POSITIONS.tolist()]
    assert np.sort(-logits, axis=1)[0].tolist() == list(range(131))


@pytest.mark.parametrize("vocab", [20, 131])
def test_the_closed_form_is_what_follows_from_the_logits(vocab: int) -> None:
    found = NullRows(POSITIONS, selection(), 64, vocab).result()
    wanted = OutputRows(null_logits(POSITIONS, vocab), selection(), 64).result()
    for name in StepResult.__struct_fields__:
        mine, theirs = getattr(found, name), getattr(wanted, name)
        if theirs is None:
            assert mine is None
        else:
            assert mine.dtype == theirs.dtype
            assert np.allclose(mine, theirs, rtol=1e-4, atol=1e-5, equal_nan=True), name


@pytest.mark.parametrize("vocab", [5, 131, 3000])
@pytest.mark.parametrize(
    "drawn",
    [draws(1.0), draws(2.0), draws(8.0), draws(0.1, 3.0), draws(2.0, 40.0, 0.9), draws(2.0, min_p=0.1)],
    ids=range(6),
)
def test_tokens_are_those_that_follow_from_the_logits(vocab: int, drawn: Draws) -> None:
    selected = selection(draws=drawn)
    mine = NullRows(POSITIONS, selected, 8, vocab).result().tokens
    theirs = OutputRows(null_logits(POSITIONS, vocab), selected, 8).result().tokens
    assert mine is not None
    assert theirs is not None
    assert mine.dtype == theirs.dtype
    assert mine.tolist() == theirs.tolist()
