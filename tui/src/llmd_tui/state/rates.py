"""Rates of an engine from two readings of its counters."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Counters(msgspec.Struct, frozen=True):
    """The counters of an engine; ``Report`` of the daemon's messages has their meaning."""

    steps: int = 0
    running: int = 0
    waiting: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    preemptions: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    kv_blocks_used: int = 0
    kv_blocks_total: int = 0


def rates(before: Mapping[str, Counters], after: Mapping[str, Counters], seconds: float) -> dict[str, float]:
    """Return figures per second of all engines together.

    An engine that was loaded in between, or whose counters began again at zero, has done all that they say
    now.
    """
    totals = dict.fromkeys(("prompt", "cached", "output", "steps", "prefill_s", "decode_s"), 0.0)
    for name, now in after.items():
        old = before.get(name, Counters())
        old = old if old.steps <= now.steps else Counters()
        totals["prompt"] += now.prompt_tokens - old.prompt_tokens
        totals["cached"] += now.cached_tokens - old.cached_tokens
        totals["output"] += now.output_tokens - old.output_tokens
        totals["steps"] += now.steps - old.steps
        totals["prefill_s"] += now.prefill_s - old.prefill_s
        totals["decode_s"] += now.decode_s - old.decode_s
    figures = {
        "decode_tps": totals["output"] / seconds,
        "prefill_tps": totals["prompt"] / seconds,
        "busy": min((totals["prefill_s"] + totals["decode_s"]) / seconds, 1.0),
    }
    if totals["steps"]:
        figures["batch"] = (totals["output"] + totals["prompt"]) / totals["steps"]
        figures["step_ms"] = (totals["prefill_s"] + totals["decode_s"]) / totals["steps"] * 1e3
    asked = totals["prompt"] + totals["cached"]
    if asked:
        figures["cache_hit"] = totals["cached"] / asked
    return figures
