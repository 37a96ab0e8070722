"""Figures in words that people read."""

from __future__ import annotations

WAITING = {
    "model": "its model to be loaded",
    "memory": "memory of other models",
    "slots": "a free slot",
    "kv_blocks": "KV blocks",
    "grammar": "its grammar to be compiled",
    "earlier": "earlier requests",
}


def share(value: float) -> str:
    """Return a share as a percentage."""
    return f"{value * 100:.0f}%"


def seconds(milliseconds: float | None) -> str:
    """Return a duration with a unit that fits; ``-`` if there is none."""
    if milliseconds is None:
        return "-"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    whole = milliseconds / 1e3
    if whole < 60:
        return f"{whole:.1f} s"
    minutes, rest = divmod(int(whole), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def waiting_reason(code: str | None) -> str:
    """Return what a request waits for, as in *waiting for KV blocks*."""
    return f"waiting for {WAITING.get(code, code)}" if code else "waiting"
