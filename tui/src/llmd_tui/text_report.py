"""What a daemon does, in sentences: its state once, then what changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llmd.api.byte_size import format_bytes
from llmd_tui.state.daemon_state import DaemonState, Request
from llmd_tui.state.follower import Status
from llmd_tui.text_lines import TextLines
from llmd_tui.widgets.plain_text import one_line
from llmd_tui.widgets.words import seconds, waiting_reason


def opening(
    address: str, state: DaemonState, devices: Sequence[Mapping[str, Any]], failure: str = ""
) -> Iterator[str]:
    """Yield the state of a daemon. ``failure`` is why the devices are not known."""
    yield f"llmd {state.version} at {address}."
    yield from (device_sentence(device) for device in devices)
    if failure:
        yield f"The devices are not known: {failure}."
    statuses = _statuses(state)
    yield from (f"The model {name} is {status}." for name, status in statuses.items())
    if not statuses:
        yield "No model is loaded."
    yield from _verdicts_by_kind(state).values()
    for request in state.requests.values():
        doing = waiting_reason(request.waiting_for) if request.is_waiting else "running"
        yield f"Request {request.request_id} to {request.model or 'a model'} is {doing}."
    yield "What changes is written from here on. Ctrl-C ends this; the daemon goes on."


def device_sentence(device: Mapping[str, Any]) -> str:
    """Return a sentence about a device."""
    name = one_line(str(device.get("name") or device.get("plugin")))
    if device.get("ok"):
        hardware = one_line(str(device.get("description") or device.get("kind") or ""))
        memory = device.get("memory_bytes")
        room = f", with {format_bytes(memory)} of memory" if memory else ""
        return f"The device {name} can be used: {hardware}{room}."
    reason, fix = (one_line(str(device.get(field) or "")) for field in ("reason", "fix"))
    return f"The device {name} is not used: {reason or 'no reason is given'}." + (
        f" Fix: {fix}." if fix else ""
    )


class TextReport:
    """Finds what has changed since the last call. Times are seconds of any clock that never goes back."""

    def __init__(self, state: DaemonState) -> None:
        self.lines = TextLines()
        self._requests = set(state.requests)
        self._ended = {request.request_id for request in state.ended}
        self._statuses = _statuses(state)
        self._verdicts = _verdicts_by_kind(state)
        self._connection: Status = "connected"

    def changes(self, state: DaemonState, status: Status, reason: str, now: float) -> list[str]:
        """Return the lines that are due; ``reason`` says why the connection was lost."""
        self._see_connection(status, reason)
        if status == "connected":
            self._see_requests(state)
            self._see_models(state)
            self._see_verdicts(state)
        return self.lines.due(now)

    def _see_connection(self, status: Status, reason: str) -> None:
        if status == self._connection:
            return
        self._connection = status
        words = {
            "lost": f"The daemon is lost: {reason}. Connecting again.",
            "connected": "The daemon is back.",
        }
        if status in words:
            self.lines.add("connection", words[status])

    def _see_requests(self, state: DaemonState) -> None:
        ended = {request.request_id: request for request in state.ended}
        for request in (*ended.values(), *state.requests.values()):
            if request.request_id not in self._requests | self._ended:
                self.lines.add("begun", begun(request))
        for name, request in ended.items():
            if name not in self._ended:
                self.lines.add("ended", finished(request))
        self._requests, self._ended = set(state.requests), set(ended)

    def _see_models(self, state: DaemonState) -> None:
        statuses = _statuses(state)
        for name in statuses | self._statuses:
            status = statuses.get(name, "unloaded")
            if status == self._statuses.get(name, "unloaded"):
                continue
            notes = [note for note in state.notes if note.startswith(f"{name} {status}: ")]
            reason = notes[-1].removeprefix(f"{name} {status}") if notes else ""
            self.lines.add("model", f"The model {name} is {status}{one_line(reason)}.")
        self._statuses = statuses

    def _see_verdicts(self, state: DaemonState) -> None:
        verdicts = _verdicts_by_kind(state)
        for kind in verdicts.keys() - self._verdicts.keys():
            self.lines.add("verdict", verdicts[kind])
        for kind in self._verdicts.keys() - verdicts.keys():
            self.lines.add("verdict gone", f"No longer so: {self._verdicts[kind]}")
        self._verdicts = verdicts


def begun(request: Request) -> str:
    """Return that a request began."""
    size = f" with {request.prompt_tokens} prompt tokens" if request.prompt_tokens else ""
    return f"Request {request.request_id} to {request.model or 'a model'} began{size}: {request.route}."


def finished(request: Request) -> str:
    """Return how a request ended, with its figures."""
    if request.error:
        status = f" with {request.status}" if request.status else ""
        return f"Request {request.request_id} failed{status}: {one_line(request.error)}."
    figures = [f"{request.prompt_tokens} tokens read", f"{request.completion_tokens} written"]
    if request.cached_tokens:
        figures[0] += f", {request.cached_tokens} of them from the cache"
    if request.ttft_ms is not None:
        figures.append(f"the first after {seconds(request.ttft_ms)}")
    if (speed := request.tokens_per_s) is not None:
        figures.append(f"then {speed:.0f} per second")
    how = f" ({request.finish})" if request.finish else ""
    return f"Request {request.request_id} ended{how} after {seconds(request.ms)}: {', '.join(figures)}."


def _statuses(state: DaemonState) -> dict[str, str]:
    loading = dict.fromkeys(state.loading, "loading")
    return {name: model.status for name, model in state.models.items()} | loading


def _verdicts_by_kind(state: DaemonState) -> dict[str, str]:
    """Return the verdicts in sentences, by what they are without their numbers, which change all the time."""
    sentences = [
        f"{name}: {one_line(verdict.sentence)}"
        for name, model in state.models.items()
        for verdict in model.verdicts
    ]
    return {re.sub(r"\d+(\.\d+)?", "0", sentence): sentence for sentence in sentences}
