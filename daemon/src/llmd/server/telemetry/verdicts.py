"""Says in sentences what a model does, and why. Pure: facts in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from llmd.server.request_progress import WaitingFor
from llmd.server.telemetry.model_facts import ModelFacts, Verdict
from llmd.server.telemetry.placement_verdicts import PLACEMENT_RULES

QUEUE_S = 2.0
LONG_QUEUE_S = 10.0
DECODE_S = 0.1
"""Less time in decode says nothing about its speed."""
MOST_OF_MEMORY = 1.05
"""Beyond this share, a model is read from caches, and the bandwidth of the memory does not limit it."""
MANY_TOKENS = 1000
SOME_PROCESSORS = 0.5
LARGE_SHARE = 0.25


def verdicts(facts: ModelFacts) -> tuple[Verdict, ...]:
    """Return what there is to say of a model, the most urgent first."""
    return tuple(verdict for rule in _RULES for verdict in rule(facts))


def _failure(facts: ModelFacts) -> Iterator[Verdict]:
    if facts.error:
        yield Verdict("warn", f"{facts.name} cannot answer: {facts.error}")


def _restarts(facts: ModelFacts) -> Iterator[Verdict]:
    if facts.restarts:
        times = _count(facts.restarts, "time", "times")
        yield Verdict("warn", f"the engine was restarted {times}: the last one ended with {facts.last_end}")


def _waiting_for_kv(facts: ModelFacts) -> Iterator[Verdict]:
    if count := facts.waiting.get("kv_blocks", 0):
        count += facts.waiting.get("earlier", 0)
        yield Verdict("warn", f"{_wait(count)} for KV blocks: {_kv_advice(facts)}")


def _preempted(facts: ModelFacts) -> Iterator[Verdict]:
    if facts.report is None or facts.before is None:
        return
    if count := facts.report.preemptions - facts.before.preemptions:
        lost = _count(count, "sequence lost its", "sequences lost their")
        yield Verdict(
            "warn",
            f"{lost} KV blocks to others in the last {facts.seconds:.0f} s and must be computed again:"
            f" {_kv_advice(facts)}",
        )


def _kv_advice(facts: ModelFacts) -> str:
    tokens = facts.loaded.kv_tokens if facts.loaded else None
    holds = f"the KV cache holds {tokens} tokens" if tokens else "the KV cache is too small"
    return f"{holds}; a larger --kv-memory or a smaller --kv-dtype makes room for more"


def _waiting_for_memory(facts: ModelFacts) -> Iterator[Verdict]:
    if count := facts.waiting.get("memory", 0):
        others = ", ".join(facts.waits_for) or "other models"
        yield Verdict(
            "warn",
            f"{_wait(count)} for memory: {facts.name} is loaded when {others} can be unloaded; `llmd stop MODEL`"
            " unloads a model at once",
        )


def _waiting(facts: ModelFacts) -> Iterator[Verdict]:
    waiting = dict(facts.waiting)
    if count := waiting.get("slots", 0):
        count += waiting.pop("earlier", 0)
        slots = _count(facts.slots, "sequence runs", "sequences run")
        yield Verdict("info", f"{_wait(count)} for a slot: {slots} at once; a higher --slots allows more")
    if "kv_blocks" in waiting:
        waiting.pop("earlier", None)
    reasons: dict[WaitingFor, str] = {
        "model": f"until {facts.name} is loaded",
        "grammar": "for a grammar that is being compiled",
        "earlier": "for earlier ones whose prompts are being computed",
        "client": "for a client that reads more slowly than the model writes",
    }
    for waiting_for, reason in reasons.items():
        if count := waiting.get(waiting_for, 0):
            yield Verdict("info", f"{_wait(count)} {reason}")


def _queue(facts: ModelFacts) -> Iterator[Verdict]:
    if facts.oldest_wait_s >= QUEUE_S:
        level: Literal["info", "warn"] = "warn" if facts.oldest_wait_s >= LONG_QUEUE_S else "info"
        yield Verdict(level, f"queue: the oldest request has waited {facts.oldest_wait_s:.0f} s")


def _decode(facts: ModelFacts) -> Iterator[Verdict]:
    """Compare the bytes that steps in decode have read with what the device reads in that time."""
    names = facts.device_names
    rate = facts.devices.read_bytes_per_s.get(names[0]) if len(names) == 1 else None
    if facts.loaded is None or facts.report is None or facts.before is None or not rate:
        return
    seconds = facts.report.decode_s - facts.before.decode_s
    if seconds < DECODE_S:
        return
    steps = facts.report.decode_steps - facts.before.decode_steps
    rows = (facts.report.decode_rows - facts.before.decode_rows) / max(steps, 1)
    num_bytes = steps * sum(stage.bytes_read(rows) for stage in facts.loaded.stages)
    num_bytes += facts.report.decode_kv_bytes - facts.before.decode_kv_bytes
    share = num_bytes / rate / seconds
    if share <= MOST_OF_MEMORY:
        yield Verdict("info", f"decode runs at {share:.2f} of what the memory of {names[0]} allows")


def _devices(facts: ModelFacts) -> Iterator[Verdict]:
    if facts.loaded is None or facts.chosen_device:
        return
    used = " and ".join(facts.device_names)
    for name, reason in facts.devices.unusable.items():
        yield Verdict("warn", f"runs on {used}, because {name} cannot be used: {reason}")


def _others(facts: ModelFacts) -> Iterator[Verdict]:
    computes = any(name in facts.devices.uses_threads for name in facts.device_names)
    if facts.report is None or facts.before is None or facts.others is None or not computes:
        return
    used, of = facts.others.used, facts.others.processors
    if facts.report.steps > facts.before.steps and used >= SOME_PROCESSORS:
        level: Literal["info", "warn"] = "warn" if used >= LARGE_SHARE * of else "info"
        yield Verdict(level, f"other programs use {used:.1f} of {of} processors")


def _prefix_cache(facts: ModelFacts) -> Iterator[Verdict]:
    if facts.report is None:
        return
    cached, computed = facts.report.cached_tokens, facts.report.prompt_tokens
    if cached + computed >= MANY_TOKENS:
        percent = 100 * cached / (cached + computed)
        yield Verdict("info", f"the prefix cache found {percent:.0f} % of the prompt tokens so far")


_RULES: Sequence[Callable[[ModelFacts], Iterator[Verdict]]] = (
    _failure,
    _restarts,
    _waiting_for_kv,
    _waiting_for_memory,
    _preempted,
    _queue,
    _waiting,
    *PLACEMENT_RULES,
    _others,
    _decode,
    _devices,
    _prefix_cache,
)


def _wait(count: int) -> str:
    return _count(count, "request waits", "requests wait")


def _count(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"
