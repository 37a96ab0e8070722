"""The layer map: one cell for each part of a model, with the letter of its device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll

from llmd.api.byte_size import format_bytes
from llmd_tui.screens.devices.placement import TWO_DEVICES, PlacedModel, Stage, letters
from llmd_tui.state.daemon_state import Model
from llmd_tui.widgets.live_text import LiveText
from llmd_tui.widgets.plain_text import one_line

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")
GROUP = 10
"""Cells between spaces, so that layers can be counted."""
SYMBOLS = {"warn": "!"}
NAMES = {"embed": "embedding"}


class LayerMap(VerticalScroll, can_focus=True):
    """The maps of all running models."""

    DEFAULT_CSS = """
    LayerMap {
        height: 1fr;
        padding: 0 2;
        border-top: solid $panel-lighten-1;
    }
    """

    def compose(self) -> ComposeResult:
        yield LiveText()

    def show(self, models: Sequence[PlacedModel], served: Mapping[str, Model]) -> None:
        """Show where models are; ``served`` has what the daemon says about them."""
        shown = Text("\n\n").join(map_of(model, served.get(model.name)) for model in models)
        nothing = Text("No model is loaded: there is nothing to place.", "dim")
        self.query_one(LiveText).show_text(shown or nothing)


def map_of(model: PlacedModel, served: Model | None = None) -> Text:
    """Return the map of a model, a line for each of its stages, and why it is there."""
    names = letters(model.devices)
    styles = {device: COLOURS[place % len(COLOURS)] for place, device in enumerate(names)}
    lines = [_title(model), _cells(model, names, styles)]
    for place, stage in enumerate(model.stages):
        words = stage_words(stage, is_first=place == 0, is_last=place == len(model.stages) - 1)
        letter = (f"{names[stage.device]} ", f"bold {styles[stage.device]}")
        lines.append(Text.assemble(letter, one_line(words)))
    for verdict in served.verdicts if served else ():
        symbol = SYMBOLS.get(verdict.level, "·")
        lines.append(
            Text(f"{symbol} {one_line(verdict.sentence)}", "bold" if verdict.level == "warn" else "")
        )
    return Text("\n").join(lines)


def stage_words(stage: Stage, *, is_first: bool, is_last: bool) -> str:
    """Return what a stage has and takes, in words."""
    parts = [stage.parts]
    if is_first and not stage.parts.startswith("embed"):
        parts = ["embedding", *parts]
    if is_last and stage.parts != "head":
        parts = [*parts, "head"]
    amounts = {"weights": stage.weight_bytes, "KV cache": stage.kv_bytes, "step buffers": stage.step_bytes}
    taken = [f"{format_bytes(amount)} of {name}" for name, amount in amounts.items() if amount]
    words = f"{stage.device}: {', '.join(filter(None, parts))}: {', '.join(taken)}"
    times = {"predicted": stage.predicted_ms, "measured": stage.measured_ms}
    known = [f"{value:.2f} ms {name}" for name, value in times.items() if value is not None]
    words += f"; a step takes {', '.join(known)}" if known else ""
    return f"{words}; why: {one_line(stage.reason)}" if stage.reason else words


def _title(model: PlacedModel) -> Text:
    where = " and ".join(model.devices) or "no device"
    layers = f"{model.num_layers} layers on {where}, {format_bytes(model.size_bytes)}"
    return Text.assemble((one_line(model.name), "bold"), f"  {layers}")


def _cells(model: PlacedModel, names: Mapping[str, str], styles: Mapping[str, str]) -> Text:
    """Return a cell for each part; layers in groups, so that they can be counted."""
    line, layer_before = Text(), ""
    for part, device in model.parts:
        layer = part.partition(".")[0]
        if not layer.isdigit():
            line.append(f"{'  ' if line else ''}{NAMES.get(part, part)} ", "dim")
        elif not layer_before.isdigit():
            line.append("  layers ", "dim")
        elif layer != layer_before and int(layer) % GROUP == 0:
            line.append(" ")
        line.append(names.get(device, TWO_DEVICES), f"not dim {styles.get(device, '')} reverse")
        layer_before = layer
    return line or Text("its stages are not known", "dim")
