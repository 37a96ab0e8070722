"""Checks of the type of keys and values against devices and programs."""

from __future__ import annotations

from llmd.api.device import DeviceInfo, Refusal
from llmd.api.kv import LATENT_KV_DTYPES, KVDtype
from llmd.api.program import Program


def missing_kv_dtype(info: DeviceInfo, program: Program, kv_dtype: KVDtype) -> list[Refusal]:
    """Return a refusal if the device or a KV group of the program cannot keep keys in this type."""
    refused = []
    what = f"KV cache as {kv_dtype}"
    if kv_dtype not in info.kv_dtypes:
        refused.append(Refusal(what, f"it supports {', '.join(info.kv_dtypes)}"))
    latent = any(group.kind == "latent" and group.layers for group in program.groups)
    if latent and kv_dtype not in LATENT_KV_DTYPES:
        refused.append(Refusal(what, f"latent attention keeps {', '.join(LATENT_KV_DTYPES)}"))
    return refused
