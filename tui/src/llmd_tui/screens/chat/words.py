"""What the chat says about an answer and about the time before it, in words."""

from __future__ import annotations

from collections.abc import Iterator

from llmd_tui.screens.chat.request_body import ROUTE
from llmd_tui.screens.chat.store.records import Content, Figures
from llmd_tui.state.daemon_state import DaemonState, Request
from llmd_tui.widgets.words import seconds, share, waiting_reason

ENDINGS = {
    "running": "llmd tui ended while this was written",
    "stopped": "stopped",
    "max_tokens": "cut: max_tokens is reached",
    "context": "cut: the context window is full",
    "lost": "the connection was lost",
    "failed": "the daemon could not answer",
}
ADVICE = {
    "running": "Tab, then c continues it; Ctrl-R writes another one",
    "stopped": "Tab, then c continues it; Ctrl-R writes another one",
    "max_tokens": "Tab, then c continues it; raise max_tokens in the settings",
    "context": "drop the oldest turns with /drop, or begin a new chat",
    "lost": "Tab, then c continues it; Ctrl-R writes another one",
    "failed": "Ctrl-R tries again",
}
EMPTY_ADVICE = "Ctrl-R tries again; until then this turn is not sent"


def ending_words(content: Content) -> str:
    """Say why an answer is not complete and what to do next; empty if it is complete."""
    if not content.ending:
        return ""
    words = ENDINGS[content.ending]
    if content.reason:
        # What is told of a lost connection says that it was lost.
        words = content.reason if content.ending == "lost" else f"{words}: {content.reason}"
    full = content.ending == "context"
    return f"{words} – {ADVICE[content.ending] if content.text or full else EMPTY_ADVICE}"


def figures_line(figures: Figures) -> str:
    """Return the measurements of an answer on one line."""
    return " · ".join(_figures(figures))


def progress_words(state: DaemonState, request_id: str, model: str) -> str:
    """Say what the daemon does before the first token; empty if its events do not tell."""
    if model in state.loading:
        loading = state.loading[model]
        done = "" if loading.share is None else f" {share(loading.share)}"
        return f"loading {model}: {loading.step}{done}"
    request = _request(state, request_id, model)
    if request is None:
        return ""
    if request.is_waiting:
        return _waiting_words(state, request)
    if request.state == "prefill" and request.prompt_done is not None and request.prompt_tokens:
        return f"reading the prompt {request.prompt_done}/{request.prompt_tokens}"
    return "reading the prompt" if request.state == "prefill" else ""


def progress_share(state: DaemonState, request_id: str, model: str) -> float | None:
    """Return how much of the load or of the prompt is done, 0 to 1; None if it is not known."""
    if model in state.loading:
        return state.loading[model].share
    request = _request(state, request_id, model)
    if request is None or request.state != "prefill" or not request.prompt_tokens:
        return None
    return None if request.prompt_done is None else request.prompt_done / request.prompt_tokens


def _figures(figures: Figures) -> Iterator[str]:
    if figures.model:
        yield figures.model
    if figures.completion_tokens is not None:
        yield f"{figures.completion_tokens} tokens"
    if figures.tokens_per_s is not None:
        yield f"{figures.tokens_per_s:.1f} tok/s"
    if figures.ttft_ms is not None:
        yield f"first after {seconds(figures.ttft_ms)}"
    if figures.prompt_tokens:
        cached = figures.cached_tokens
        known = f" ({share(cached / figures.prompt_tokens)} cached)" if cached is not None else ""
        yield f"prompt {figures.prompt_tokens}{known}"
    if figures.seed is not None:
        yield f"seed {figures.seed}"


def _waiting_words(state: DaemonState, request: Request) -> str:
    earlier = 0
    for one in state.requests.values():
        if one.request_id == request.request_id:
            break
        earlier += one.model == request.model and one.is_waiting
    if earlier:
        return f"waiting: {earlier} request{'s' if earlier > 1 else ''} before it"
    return waiting_reason(request.waiting_for)


def _request(state: DaemonState, request_id: str, model: str) -> Request | None:
    """Return the request of that id; from a daemon that gives ids of its own, the newest one of its kind."""
    if request_id in state.requests:
        return state.requests[request_id]
    alike = [one for one in state.requests.values() if one.route == ROUTE and one.model == model]
    return alike[-1] if alike else None
