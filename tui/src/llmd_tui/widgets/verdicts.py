"""What the daemon says about its models, in words."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from llmd_tui.state.daemon_state import Loading, Model
from llmd_tui.widgets.live_text import LiveText
from llmd_tui.widgets.words import share

SYMBOLS = {"info": "·", "warn": "!"}


class Verdicts(LiveText):
    """A sentence a line: warnings first, then the rest, model by model."""

    DEFAULT_CSS = """
    Verdicts {
        max-height: 6;
        padding: 0 1;
        color: $foreground;
    }
    """

    def show(self, models: Mapping[str, Model], loading: Mapping[str, Loading]) -> None:
        """Say what there is to say now."""
        self.show_text(Text("\n").join(sentences(models, loading)))


def sentences(models: Mapping[str, Model], loading: Mapping[str, Loading]) -> list[Text]:
    """Return the sentences about the models; one sentence if there is nothing to say."""
    said = [
        (verdict.level != "warn", f"{name}: {verdict.sentence}", verdict.level)
        for name, model in models.items()
        for verdict in model.verdicts
    ]
    said += [(True, f"{name}: {_loading(one)}", "info") for name, one in loading.items()]
    said += [
        (False, f"{name}: {model.status}", "warn")
        for name, model in models.items()
        if model.status in {"failed", "restarting"}
    ]
    if not said:
        quiet = "No model is loaded." if not models else "Nothing waits and nothing is wrong."
        return [Text(quiet, "dim")]
    return [
        Text(f"{SYMBOLS.get(level, '·')} {text}", "bold" if level == "warn" else "")
        for _, text, level in sorted(said, key=lambda one: one[0])
    ]


def _loading(loading: Loading) -> str:
    if loading.share is None:
        return f"loading, {loading.step or 'starting'}"
    return f"loading, {loading.step} {share(loading.share)}"
