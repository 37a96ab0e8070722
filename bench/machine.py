"""What is measured on."""

from __future__ import annotations

import os
from pathlib import Path

INTERESTING = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_int8", "asimddp", "i8mm")


def describe() -> str:
    """CPU model, family, count and the flags that kernels care about."""
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    flags = [flag for flag in INTERESTING if flag in fields.get("flags", fields.get("Features", "")).split()]
    name = fields.get("model name", "unknown CPU")
    family = f"family {fields.get('cpu family', '?')} model {fields.get('model', '?')}"
    return f"{name} ({family}), {len(os.sched_getaffinity(0))} CPUs, {' '.join(flags)}"
