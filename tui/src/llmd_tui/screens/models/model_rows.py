"""The rows of the table of models."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.byte_size import format_bytes
from llmd_tui.screens.models.listing import ListedModel, time_left
from llmd_tui.widgets.bars import progress
from llmd_tui.widgets.details import Section
from llmd_tui.widgets.table_rows import Column, Row

STATE_WIDTH = 24
COLUMNS: Sequence[Column] = (
    Column("NAME"),
    Column("STATE", STATE_WIDTH),
    Column("SIZE", 10, is_number=True),
    Column("FORMAT", 8),
    Column("PARAMS", 7, 78, is_number=True),
    Column("CONTEXT", 8, 98, is_number=True),
    Column("ARCHITECTURE", 24, 150),
    Column("SOURCE", 0, 110),
    Column("MODIFIED", 16, 140),
)
STATES = ("failed", "loading", "restarting", "loaded", "unloaded")
"""In the order in which the table is sorted."""
SYMBOLS = {"loaded": "●", "loading": "◐", "restarting": "◐", "failed": "✗", "unloaded": "○"}


def row_of(model: ListedModel, *, ascii_only: bool = False) -> Row:
    """Return the row of a model."""
    state = shown_state(model)
    return Row(
        model.name,
        (
            ", ".join([model.name, *model.aliases]),
            state_text(model, ascii_only=ascii_only),
            format_bytes(model.size_bytes) if model.size_bytes else "-",
            model.format or "-",
            model.parameters or "-",
            str(model.context_len or "-"),
            model.architecture or "-",
            model.origin,
            model.modified[:16].replace("T", " ") or "-",
        ),
        (
            model.name.casefold(),
            STATES.index(state) if state in STATES else 0,
            model.size_bytes or None,
            model.format or None,
            model.num_parameters or None,
            model.context_len,
            model.architecture.casefold() or None,
            model.origin.casefold(),
            model.modified or None,
        ),
        "bold" if state == "failed" else "dim" if state == "unloaded" else "",
    )


def shown_state(model: ListedModel) -> str:
    """Return the state of a model; one that cannot be used counts as failed."""
    return "failed" if model.reason and model.state == "unloaded" else model.state


def state_text(model: ListedModel, *, ascii_only: bool = False) -> str:
    """Return the state for a cell: with a bar while the model is loaded, with the time left afterwards."""
    state = shown_state(model)
    symbol = SYMBOLS.get(state, "?")
    if state == "loading" and model.waits_for:
        return f"{symbol} waits for memory"
    if state == "loading" and model.loading and model.loading.total:
        done = progress(model.loading.done, model.loading.total, STATE_WIDTH - 2, ascii_only=ascii_only)
        return f"{symbol} {done}"
    if state == "loaded":
        return ", ".join(filter(None, [f"{symbol} loaded", time_left(model)]))
    return f"{symbol} {state}: {model.reason}" if state == "failed" and model.reason else f"{symbol} {state}"


def summary(model: ListedModel) -> list[Section]:
    """Return the lines below the table about the model under the cursor."""
    weights = [
        model.architecture,
        f"{model.parameters} parameters" if model.parameters else "",
        " ".join(filter(None, [model.format, model.file_format])),
        f"{model.context_len} tokens of context" if model.context_len else "",
    ]
    memory = f"{format_bytes(model.memory_bytes)} on {', '.join(model.devices)}" if model.memory_bytes else ""
    loading = f"{model.loading.step}" if model.loading and model.state == "loading" else ""
    if model.waits_for:
        loading = f"waits for the memory of {', '.join(model.waits_for)}"
    return [
        Section("Cannot be used" if shown_state(model) == "failed" else "Notice", model.reason),
        Section("Loading", loading),
        Section("Model", ", ".join(filter(None, weights))),
        Section("Memory", memory),
        Section(
            "From", model.origin if model.origin == model.directory else f"{model.origin}, {model.directory}"
        ),
    ]
