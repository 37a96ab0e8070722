from __future__ import annotations

import pytest

from llmd_tui.widgets.bars import Piece, plain_bar, progress, stacked


@pytest.mark.parametrize(
    ("done", "total", "bar"),
    [
        (0, 10, "░░░░░░   0%"),
        (5, 10, "███░░░  50%"),
        (10, 10, "██████ 100%"),
        (12, 10, "██████ 100%"),
        (3, 0, "░░░░░░   0%"),
    ],
)
def test_progress_is_a_bar_with_its_percentage(done: int, total: int, bar: str) -> None:
    assert progress(done, total, 11) == bar


def test_progress_has_a_form_for_terminals_without_blocks() -> None:
    assert progress(1, 2, 9, ascii_only=True) == "##..  50%"


def test_pieces_have_their_share_and_small_ones_a_cell() -> None:
    pieces = [Piece("large", 50, "A"), Piece("tiny", 0.1, "b"), Piece("none", 0, "c")]
    assert stacked(pieces, 100, 10).plain == "AAAAAb····"
    assert stacked([Piece("all", 200, "A"), Piece("late", 1, "b")], 100, 4, rest=".").plain == "AAAA"
    assert stacked(pieces, 0, 3).plain == "Ab·"


def test_a_plain_bar_has_no_figures() -> None:
    assert plain_bar(0.5, 4) == "■■··"
    assert plain_bar(1.0, 4, ascii_only=True) == "####"
