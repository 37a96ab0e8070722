"""Answers of a daemon about its devices."""

from __future__ import annotations

from typing import Any

GIB = 1 << 30
MIB = 1 << 20


def device(name: str = "cpu", **changes: Any) -> dict[str, Any]:
    """A device of ``GET /llmd/devices``, as a daemon that measures nothing tells it."""
    return {
        "name": name,
        "kind": name.split(":", maxsplit=1)[0],
        "description": "a processor",
        "memory_bytes": 16 * GIB,
        "plugin": name.split(":", maxsplit=1)[0],
        "ok": True,
        "reason": "",
        "fix": "",
        **changes,
    }


def stage(device: str, parts: str, first: int, last: int, **changes: Any) -> dict[str, Any]:
    """A stage of ``GET /llmd/plan``."""
    return {
        "device": device,
        "parts": parts,
        "weight_bytes": 2 * GIB,
        "kv_bytes": GIB,
        "step_bytes": 30 * MIB,
        "memory_id": "host",
        "first": first,
        "last": last,
        **changes,
    }


DEVICES = {
    "devices": [
        device(
            description="AMD EPYC 9655, avx512",
            memory_id="host",
            read_bytes_per_s=42e9,
            prefill_flops_per_s=1.2e12,
            decode_bytes_per_s={"q4": 38e9},
        ),
        device("reference", description="NumPy", memory_id="host"),
        device(
            "cuda:0",
            description="",
            memory_bytes=None,
            ok=False,
            reason="the driver is older than 550",
            fix="run `apt install driver`, then restart the daemon",
        ),
    ],
    "memories": [
        {
            "memory_id": "host",
            "devices": ["cpu", "reference"],
            "total_bytes": 32 * GIB,
            "free_bytes": 20 * GIB,
            "weight_bytes": 6 * GIB,
            "kv_bytes": 3 * GIB,
            "step_bytes": 90 * MIB,
            "other_bytes": 2 * GIB,
        }
    ],
}
PLAN = {
    "models": [
        {
            "name": "guide",
            "stages": [stage("cpu", "layers 0-5", 0, 6), stage("reference", "layers 6-11", 6, 12)],
        },
        {"name": "small", "stages": [stage("cpu", "layers 0-27", 0, 28)]},
    ]
}
