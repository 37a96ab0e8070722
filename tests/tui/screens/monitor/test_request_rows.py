from __future__ import annotations

import msgspec
import pytest

from llmd_tui.screens.monitor.request_rows import COLUMNS, row_of, shown_rows, state_of
from llmd_tui.state.daemon_state import DaemonState, Request
from llmd_tui.widgets.table_rows import fitting


def made(**fields: object) -> Request:
    return msgspec.convert({"request_id": "chatcmpl-123456789abc", **fields}, Request)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (made(state="queued", waiting_for="model"), "waiting for its model to be loaded"),
        (made(state="waiting", waiting_for="kv_blocks"), "waiting for KV blocks"),
        (made(state="waiting"), "waiting"),
        (made(state="decode"), "decode"),
        (made(state="ended", finish="stop"), "ended: stop"),
        (made(state="ended", finish="error", error="engine_crashed"), "failed: engine_crashed"),
        (made(state="ended", finish="error", error="request_cancelled"), "cancelled"),
        (made(), "-"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_states_say_why(request_: Request, words: str) -> None:
    assert state_of(request_) == words


def test_rows_have_a_cell_for_each_column() -> None:
    cells = dict(
        zip(
            [column.title for column in COLUMNS],
            row_of(
                made(state="prefill", prompt_tokens=200, prompt_done=64, cached_tokens=50, kv_blocks=4)
            ).cells,
            strict=True,
        )
    )
    assert cells["REQUEST"] == "3456789abc"
    assert (cells["PROMPT"], cells["CACHED"], cells["KV"]) == ("64/200", "25%", "4")
    assert (cells["TOK/S"], cells["FIRST"], cells["CLIENT"]) == ("-", "-", "-")


def test_tokens_that_come_at_once_have_no_rate() -> None:
    place = [column.title for column in COLUMNS].index("TOK/S")
    fast = made(state="ended", completion_tokens=21, ttft_ms=50.0, ms=66.0)
    slow = made(state="ended", completion_tokens=21, ttft_ms=50.0, ms=250.0)
    assert [row_of(one).cells[place] for one in (fast, slow)] == ["-", "100"]


def test_narrow_terminals_keep_the_columns_that_matter_most() -> None:
    assert [COLUMNS[place].title for place in fitting(COLUMNS, 60)] == ["REQUEST", "STATE", "OUT"]
    assert list(fitting(COLUMNS, 200)) == list(range(len(COLUMNS)))
    for width in range(40, 200):
        assert sum(one + 1 for one in fitting(COLUMNS, width).values()) <= width


def test_live_requests_come_before_those_that_ended_last() -> None:
    state = DaemonState()
    state.requests = {"b": made(request_id="b", model="guide"), "a": made(request_id="a", model="other")}
    state.ended = [made(request_id="old"), made(request_id="new")]
    assert [row.key for row in shown_rows(state, "")] == ["b", "a", "new", "old"]
    assert [row.key for row in shown_rows(state, "OTHER")] == ["a"]
