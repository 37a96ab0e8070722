from __future__ import annotations

import pytest

from llmd_tui.screens.models.listing import ListedModel
from llmd_tui.screens.models.model_rows import COLUMNS, row_of, shown_state, state_text, summary
from llmd_tui.state.daemon_state import Loading

WHOLE = ListedModel(
    "org/x",
    directory="/models/x",
    modified="2026-11-20T10:11:12Z",
    architecture="LlamaForCausalLM",
    num_parameters=1_235_814_400,
    format="bf16",
    file_format="safetensors",
    size_bytes=2 << 30,
    context_len=4096,
    source="org/x",
    commit="0123456789",
)


def test_a_row_has_a_cell_and_a_sort_key_for_each_column() -> None:
    row = row_of(WHOLE)
    assert row.cells == (
        "org/x",
        "○ unloaded",
        "2.0 GiB",
        "bf16",
        "1.24B",
        "4096",
        "LlamaForCausalLM",
        "org/x@01234567",
        "2026-11-20 10:11",
    )
    assert len(row.order) == len(COLUMNS)
    empty = row_of(ListedModel("x"))
    assert empty.cells[2:7] == ("-",) * 5
    assert empty.order[2:7] == (None,) * 5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state": "loaded"}, "● loaded"),
        ({"state": "loaded", "users": 2}, "● loaded, answers 2"),
        ({"state": "unloaded", "reason": "no config"}, "✗ failed: no config"),
        ({"state": "failed", "reason": "no memory"}, "✗ failed: no memory"),
        ({"state": "loading"}, "◐ loading"),
        ({"state": "loading", "loading": Loading("weights", 1, 2)}, "◐ ████████░░░░░░░░░  50%"),
        ({"state": "loading", "waits_for": ("guide",)}, "◐ waits for memory"),
        ({"state": "hibernating"}, "? hibernating"),
    ],
)
def test_states_have_a_symbol_and_words(changes: dict[str, object], words: str) -> None:
    assert state_text(ListedModel("x", **changes)) == words  # type: ignore[arg-type]


def test_a_load_has_a_bar_for_terminals_without_blocks() -> None:
    loading = ListedModel("x", state="loading", loading=Loading("weights", 1, 2))
    assert state_text(loading, ascii_only=True) == "◐ ########.........  50%"


def test_states_that_need_a_person_come_first() -> None:
    states = [ListedModel("x", state=state) for state in ("unloaded", "loaded", "loading", "failed")]
    ordered = sorted(states, key=lambda model: row_of(model).order[1])
    assert [shown_state(model) for model in ordered] == ["failed", "loading", "loaded", "unloaded"]


def test_the_lines_below_say_what_the_cells_cannot() -> None:
    sections = {heading: text for heading, text in summary(WHOLE) if text}
    assert sections == {
        "Model": "LlamaForCausalLM, 1.24B parameters, bf16 safetensors, 4096 tokens of context",
        "From": "org/x@01234567, /models/x",
    }
    loaded = ListedModel("x", state="loaded", memory_bytes=1 << 30, devices=("cpu", "cuda:0"), directory="/x")
    assert dict(summary(loaded))["Memory"] == "1.0 GiB on cpu, cuda:0"
    assert dict(summary(loaded))["From"] == "/x"
    failed = ListedModel("x", state="failed", reason="no memory")
    assert dict(summary(failed))["Cannot be used"] == "no memory"
    waiting = ListedModel("x", state="loading", waits_for=("a", "b"))
    assert dict(summary(waiting))["Loading"] == "waits for the memory of a, b"
