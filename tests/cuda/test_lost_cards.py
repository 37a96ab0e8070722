"""Streams go on with the same tokens when a card is lost or has too little memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cuda.conftest import FEW
from tests.cuda.failing_card import FailingCard
from tests.cuda.simulated import NEEDS_COMPILER, open_device
from tests.serving.mixed_requests import Answers
from tests.serving.threaded_engine import ThreadedEngine, answers_of

pytestmark = NEEDS_COMPILER

OUT_OF_MEMORY = 2


@pytest.mark.parametrize(
    ("status", "call", "after"),
    [
        (700, "wait", 6),  # a kernel read an invalid address
        (999, "queue", 101),  # the card has fallen off the bus
    ],
)
def test_all_streams_go_on_when_a_card_is_lost(
    directory: Path, expected: Answers, status: int, call: str, after: int
) -> None:
    first = FailingCard(0)
    first.fail(status, call, after)
    engine = ThreadedEngine(open_device(first, 0), open_device(FailingCard(1), 1))
    found, moves = answers_of(engine, directory, "cuda:0", kv_dtype="f16", most=FEW)
    assert engine.end() == 0
    assert first.has_failed
    assert [[stage.device for stage in move.stages] for move in moves] == [["cuda:1"]]
    assert "devices were lost (cuda:0)" in moves[0].notices[-1]
    assert found == expected


def test_all_streams_go_on_when_a_card_runs_out_of_memory(directory: Path, expected: Answers) -> None:
    card = FailingCard()
    card.fail(OUT_OF_MEMORY, "queue", 100)
    engine = ThreadedEngine(open_device(card))
    found, moves = answers_of(engine, directory, "cuda:0", kv_dtype="f16", most=FEW)
    assert engine.end() == 0
    assert card.has_failed
    assert [[stage.device for stage in move.stages] for move in moves] == [["cuda:0"]]
    assert "the KV pool was reduced" in moves[0].notices[-1]
    assert found == expected
