from __future__ import annotations

import numpy as np
import pytest

from llmd.api import StageLimits, Step, Ticket
from llmd.engine.batch import select_rows
from llmd.models.lowering import lower
from llmd.testing.null_device import NullDevice, NullStage
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource


@pytest.fixture
def stage() -> NullStage:
    program = lower(TinyModel(window=None).plan(), 0, 10, format_of=lambda _kind, _ref: "f32")
    device = NullDevice(lambda: 0.0)
    assert device.check(program) == []
    parts = device.load(program, RandomSource(), lambda _done, _total: None)
    return parts.stage({0: 4}, StageLimits(8, 2, 2))


def step(token: int = 1, feed: Ticket | None = None) -> Step:
    one = np.zeros(1, np.int32)
    table = (np.zeros((1, 1), np.int32),)
    return Step(one + token, one, np.array([0, 1], np.int32), table, np.zeros((0, 3), np.int32), feed)


def test_answers_every_row_alike(stage: NullStage) -> None:
    result = stage.wait(stage.submit(step(), None, select_rows(np.zeros(1, np.int32))), 0.0)
    assert result.ids[0, :3].tolist() == [0, 1, 2]


def test_feeding_from_an_unknown_ticket_is_refused(stage: NullStage) -> None:
    with pytest.raises(ValueError, match="fed from"):
        stage.submit(step(-1, Ticket(9)), None, select_rows(np.zeros(1, np.int32)))


def test_masked_rows_need_their_masks(stage: NullStage) -> None:
    selection = select_rows(np.zeros(1, np.int32))
    selection.masked[0] = True
    ticket = stage.submit(step(), None, selection)
    with pytest.raises(ValueError, match="before apply_masks"):
        stage.wait(ticket, 0.0)
    with pytest.raises(ValueError, match="2 masks for 1"):
        stage.apply_masks(ticket, np.zeros((2, 5), np.uint32))
    stage.apply_masks(ticket, np.zeros((1, 5), np.uint32))
    stage.wait(ticket, 0.0)


def test_a_step_against_the_contract_is_refused(stage: NullStage) -> None:
    with pytest.raises(ValueError, match="token_ids reach"):
        stage.submit(step(500), None, select_rows(np.zeros(1, np.int32)))
