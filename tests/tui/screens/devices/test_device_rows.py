from __future__ import annotations

import pytest

from llmd_tui.screens.devices.device_rows import (
    COLUMNS,
    measured_words,
    memory_bar,
    memory_words,
    row_of,
    state_words,
    summary,
)
from llmd_tui.screens.devices.placement import Use, placed_models
from tests.tui.screens.devices.device_answers import DEVICES, GIB, MIB, PLAN, device

CPU, _, CUDA = DEVICES["devices"]


def test_a_row_has_a_cell_and_a_sort_key_for_each_column() -> None:
    row = row_of(CPU, Use(16 * GIB, weights=4 * GIB, kv=2 * GIB, steps=MIB, other=GIB))
    assert list(map(str, row.cells)) == [
        "cpu",
        "● ok",
        "██████▓▓▓▒░░············",
        "9.0 GiB / 16.0 GiB",
        "42.0",
        "1200.0",
        "cpu",
        "cpu",
    ]
    assert len(row.order) == len(COLUMNS)


def test_a_device_without_figures_has_none() -> None:
    assert list(map(str, row_of(CUDA, None).cells[2:6])) == ["-"] * 4
    assert row_of(CUDA, None).order[2:6] == (None,) * 4


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ok": True}, "● ok"),
        ({"ok": False, "reason": "no\ndriver"}, "✗ not used: no driver"),
        ({"ok": False}, "✗ not used"),
    ],
)
def test_states_have_a_symbol_and_the_reason(fields: dict[str, object], words: str) -> None:
    assert state_words(fields) == words


def test_pieces_of_a_bar_differ_without_colour_and_have_numbers() -> None:
    use = Use(16 * GIB, weights=4 * GIB, kv=4 * GIB, steps=1, other=4 * GIB)
    assert memory_bar(use, 16).plain == "████▓▓▓▓▒░░░░···"
    assert memory_bar(use, 16, ascii_only=True).plain == "WWWWKKKKSoooo..."
    assert memory_words(use) == (
        "█ weights 4.0 GiB, ▓ KV cache 4.0 GiB, ▒ step buffers 1 B, ░ others 4.0 GiB, · free 4.0 GiB"
    )
    assert memory_words(Use(GIB), ascii_only=True) == ". free or used by others 1.0 GiB"


def test_measured_rates_are_told_or_how_to_get_them() -> None:
    assert measured_words(CPU) == "reads 42.0 GB/s, 1200.0 GFLOP/s in prefill, decodes q4 at 38.0 GB/s"
    assert "`llmd devices` measures" in measured_words(device())
    assert measured_words(CUDA) == ""


def test_the_lines_below_say_why_a_device_is_not_used_and_what_to_do() -> None:
    found = {heading: text for heading, text in summary(CUDA, None, placed_models(PLAN)) if text}
    assert found == {
        "Not used": "the driver is older than 550",
        "Fix": "run `apt install driver`, then restart the daemon",
    }
    assert dict(summary(CPU, None, placed_models(PLAN)))["Runs"] == "guide, small"
    assert dict(summary(device(verdict="at 0.9 of its rate"), None, []))["Verdict"] == "at 0.9 of its rate"
    assert "gives no reason" in dict(summary({"ok": False}, None, []))["Not used"]
