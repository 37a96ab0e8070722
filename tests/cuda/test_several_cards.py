"""A model that is divided between two cards of one process answers as on one card."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.messages import StageSpec
from tests.cuda.conftest import FEW
from tests.cuda.failing_card import FailingCard
from tests.cuda.simulated import NEEDS_COMPILER, open_device
from tests.serving.mixed_requests import Answers
from tests.serving.threaded_engine import ThreadedEngine, answers_of

pytestmark = NEEDS_COMPILER

STAGES = (StageSpec("cuda:0", "embed", "0"), StageSpec("cuda:1", "1", "head"))


def test_two_cards_give_the_tokens_of_one(directory: Path, expected: Answers) -> None:
    cards = FailingCard(0), FailingCard(1)
    engine = ThreadedEngine(*(open_device(card, index) for index, card in enumerate(cards)))
    found, moves = answers_of(engine, directory, "auto", stages=STAGES, kv_dtype="f16", most=FEW)
    assert engine.end() == 0
    assert moves == []
    assert found == expected
    assert all(card.num_graphs for card in cards)
    assert not set(cards[0].launched) & {"scan_parts", "finish_rows"}, "only the second card has the head"


@pytest.mark.parametrize("lost", [0, 1])
def test_the_card_that_failed_is_the_one_that_loses_its_part(
    directory: Path, expected: Answers, lost: int
) -> None:
    cards = FailingCard(0), FailingCard(1)
    cards[lost].fail(700, "wait", 7)
    engine = ThreadedEngine(*(open_device(card, index) for index, card in enumerate(cards)))
    found, moves = answers_of(engine, directory, "auto", stages=STAGES, kv_dtype="f16", most=FEW)
    assert engine.end() == 0
    assert cards[lost].has_failed
    assert [{stage.device for stage in move.stages} for move in moves] == [{f"cuda:{1 - lost}"}]
    assert found == expected
