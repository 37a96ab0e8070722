"""A card about a daemon to paste into an issue. It contains no text of prompts or answers."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from llmd.api.errors import LlmdError
from llmd_tui import actions
from llmd_tui.daemon.access import Daemon
from llmd_tui.state.daemon_state import DaemonState
from llmd_tui.widgets.key_footer import KeyFooter

ROUTES = {"devices": "/llmd/devices", "plan": "/llmd/plan", "plugins": "/llmd/plugins"}
ERRORS_SHOWN = 10
DISTRIBUTIONS = (
    "llmd-daemon",
    "llmd-backend-cpu",
    "llmd-backend-cuda",
    "llmd-backend-vulkan",
    "llmd-transport",
    "llmd-tui",
)


async def diagnosis(daemon: Daemon, state: DaemonState) -> str:
    """Return the card of a daemon as Markdown. What the daemon does not answer is named with the reason."""
    answers: dict[str, Mapping[str, Any]] = {}
    failures = []
    for name, route in ROUTES.items():
        try:
            answers[name] = await daemon.get(route)
        except LlmdError as error:
            failures.append(f"{route}: {error}")
    return "\n".join([*card(state, answers), *(f"- not answered: {failure}" for failure in failures)])


def card(state: DaemonState, answers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a card."""
    yield "### llmd"
    yield f"- daemon {state.version or 'unknown'}; client {', '.join(_versions())}"
    yield f"- Python {platform.python_version()}, {platform.system()} {platform.release()}, {platform.machine()}"
    yield "### devices"
    for device in answers.get("devices", {}).get("devices", ()):
        reason = "" if device.get("ok") else f", not used: {device.get('reason')}"
        yield f"- {device.get('name')}: {device.get('description') or device.get('kind')}{reason}"
    yield "### models"
    for model in answers.get("plan", {}).get("models", ()):
        for stage in model.get("stages", ()):
            yield f"- {model.get('name')}: {stage.get('parts')} on {stage.get('device')}"
    for name, served in state.models.items():
        yield f"- {name}: {served.status}"
        yield from (f"  - {verdict.sentence}" for verdict in served.verdicts)
    yield "### rates"
    figures = ("decode_tps", "prefill_tps", "step_ms", "batch", "ttft_ms", "itl_ms", "kv_usage", "cache_hit")
    known = [(name, state.history.last(name)) for name in figures]
    yield "- " + (", ".join(f"{name} {value:.2f}" for name, value in known if value is not None) or "none")
    yield "### plugins that failed"
    failed = [one for one in answers.get("plugins", {}).get("plugins", ()) if one.get("state") == "failed"]
    yield from (f"- {one.get('name')}: {one.get('reason')}" for one in failed)
    yield "### errors"
    errors = [one for one in state.ended if one.error]
    yield from (f"- {one.route}: {one.status} {one.error}" for one in errors[-ERRORS_SHOWN:])
    yield from (f"- {note}" for note in state.notes[-ERRORS_SHOWN:])


def _versions() -> Iterator[str]:
    for name in DISTRIBUTIONS:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue


class DiagnosisCard(ModalScreen[None]):
    """Shows a card; ``y`` copies it."""

    CSS_PATH = "diagnosis.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "Copy"),
        Binding("escape,q", "dismiss", "Close"),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical(id="card"):
            with VerticalScroll():
                yield Static(self._text, markup=False)
            yield KeyFooter(with_palette=False)

    def action_copy(self) -> None:
        self.post_message(actions.CopyText(self._text, "the card"))
