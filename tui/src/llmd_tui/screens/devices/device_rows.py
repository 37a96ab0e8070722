"""The table of devices, and what is said about the one under the cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from llmd.api.byte_size import format_bytes
from llmd_tui.screens.devices.placement import PlacedModel, Use
from llmd_tui.widgets.bars import Piece, stacked
from llmd_tui.widgets.details import Section
from llmd_tui.widgets.plain_text import one_line
from llmd_tui.widgets.table_rows import Column, Row

BAR_WIDTH = 24
COLUMNS: Sequence[Column] = (
    Column("NAME", 14),
    Column("STATE", 0),
    Column("MEMORY", BAR_WIDTH),
    Column("FREE/TOTAL", 19, is_number=True),
    Column("GB/S", 7, 90, is_number=True),
    Column("GFLOP/S", 8, 100, is_number=True),
    Column("KIND", 10, 120),
    Column("PLUGIN", 14, 120),
)
MARKS = {"weights": "█", "KV cache": "▓", "step buffers": "▒", "others": "░"}
ASCII_MARKS = {"weights": "W", "KV cache": "K", "step buffers": "S", "others": "o"}
STYLES = {"weights": "cyan", "KV cache": "magenta", "step buffers": "yellow", "others": "dim"}
GIGA = 1e9


def row_of(device: Mapping[str, Any], use: Use | None, *, ascii_only: bool = False) -> Row:
    """Return the row of a device."""
    rates = device.get("read_bytes_per_s"), device.get("prefill_flops_per_s")
    name, kind, plugin = (one_line(str(device.get(field) or "")) for field in ("name", "kind", "plugin"))
    state = state_words(device)
    return Row(
        f"{plugin}/{name}",
        (
            name,
            state,
            memory_bar(use, BAR_WIDTH, ascii_only=ascii_only) if use else "-",
            f"{format_bytes(use.free)} / {format_bytes(use.total)}" if use else "-",
            *("-" if rate is None else f"{rate / GIGA:.1f}" for rate in rates),
            kind or "-",
            plugin or "-",
        ),
        (name.casefold(), state, use and use.ours / use.total, use and use.free, *rates, kind, plugin),
        "" if device.get("ok") else "dim",
    )


def state_words(device: Mapping[str, Any]) -> str:
    """Return the state of a device with its reason."""
    if device.get("ok"):
        return "● ok"
    reason = one_line(str(device.get("reason") or ""))
    return f"✗ not used: {reason}" if reason else "✗ not used"


def memory_bar(use: Use, width: int, *, ascii_only: bool = False) -> Text:
    """Return what a device's memory consists of; what is free is a row of dots."""
    marks = ASCII_MARKS if ascii_only else MARKS
    amounts = _amounts(use)
    pieces = [Piece(name, amounts[name], marks[name], STYLES[name]) for name in marks]
    return stacked(pieces, use.total, width, rest="." if ascii_only else "·")


def summary(
    device: Mapping[str, Any], use: Use | None, models: Sequence[PlacedModel], *, ascii_only: bool = False
) -> list[Section]:
    """Return the lines about the device under the cursor."""
    name = str(device.get("name") or "")
    running = [model.name for model in models if name in model.devices]
    return [
        Section(
            "Not used",
            "" if device.get("ok") else one_line(str(device.get("reason") or "the plugin gives no reason")),
        ),
        Section("Fix", one_line(str(device.get("fix") or ""))),
        Section("Hardware", one_line(str(device.get("description") or ""))),
        Section("Memory", memory_words(use, ascii_only=ascii_only) if use else ""),
        Section("Measured", measured_words(device)),
        Section("Runs", ", ".join(running) if device.get("ok") else ""),
        Section("Verdict", one_line(str(device.get("verdict") or ""))),
    ]


def memory_words(use: Use, *, ascii_only: bool = False) -> str:
    """Return the numbers of a memory bar, each after its mark."""
    marks = ASCII_MARKS if ascii_only else MARKS
    named = [
        f"{marks[name]} {name} {format_bytes(round(amount))}"
        for name, amount in _amounts(use).items()
        if amount
    ]
    left = "free" if use.other is not None else "free or used by others"
    return ", ".join([*named, f"{'.' if ascii_only else '·'} {left} {format_bytes(use.free)}"])


def measured_words(device: Mapping[str, Any]) -> str:
    """Return the measured rates of a device."""
    read, flops = device.get("read_bytes_per_s"), device.get("prefill_flops_per_s")
    known = [
        f"reads {read / GIGA:.1f} GB/s" if read is not None else "",
        f"{flops / GIGA:.1f} GFLOP/s in prefill" if flops is not None else "",
        *(
            f"decodes {name} at {rate / GIGA:.1f} GB/s"
            for name, rate in (device.get("decode_bytes_per_s") or {}).items()
        ),
    ]
    words = ", ".join(filter(None, known))
    return words or ("not yet: `llmd devices` measures each device once" if device.get("ok") else "")


def _amounts(use: Use) -> dict[str, float]:
    return {"weights": use.weights, "KV cache": use.kv, "step buffers": use.steps, "others": use.other or 0}
