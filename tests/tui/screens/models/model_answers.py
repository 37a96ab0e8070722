"""Answers of a daemon about its models."""

from __future__ import annotations

from typing import Any

GIB = 1 << 30


def stored(name: str, **changes: Any) -> dict[str, Any]:
    """A model of ``GET /llmd/models``."""
    return {
        "name": name,
        "directory": f"/models/{name}",
        "modified": "2026-11-20T10:11:12Z",
        "architecture": "LlamaForCausalLM",
        "num_parameters": 1_235_814_400,
        "format": "bf16",
        "file_format": "safetensors",
        "size_bytes": 2 * GIB,
        "context_len": 131_072,
        "builtin": False,
        "reason": "",
        "source": "",
        "commit": "",
        "base": "",
        "state": "unloaded",
        "loading": None,
        **changes,
    }


def served(name: str, **changes: Any) -> dict[str, Any]:
    """A model of ``GET /llmd/ps``."""
    return {
        "name": name,
        "aliases": [],
        "directory": f"/models/{name}",
        "status": "loaded",
        "error": None,
        "loading": None,
        "users": 0,
        "size_bytes": 3 * GIB,
        "expires_at": None,
        "waits_for": [],
        "context_len": 4096,
        "loaded": {
            "architecture": "llama",
            "num_parameters": 7,
            "formats": ["q4"],
            "stages": [{"device": "cpu", "weight_bytes": 2 * GIB}],
        },
        **changes,
    }


MODELS = {
    "models": [
        stored("guide", num_parameters=4_000_000, size_bytes=17 << 20, builtin=True, state="loaded"),
        stored("meta/Llama-3.2-1B", source="meta/Llama-3.2-1B", commit="abcdef0123456789"),
        stored("pirate", base="guide", state="loaded"),
        stored(
            "broken",
            reason="config.json has no num_hidden_layers (pull it again)",
            architecture="",
            num_parameters=0,
            size_bytes=0,
            format="",
            file_format="",
        ),
        stored("big-70B", num_parameters=70_000_000_000, size_bytes=140 * GIB),
    ],
    "pulls": [],
}
SERVED = {"models": [served("guide", aliases=["assistant"])]}
DEVICES = {"devices": [{"name": "cpu", "ok": True, "memory_bytes": 16 * GIB}]}
SHOWN = {
    "license": "Apache License",
    "parameters": "temperature 0.7",
    "template": "{% for m in messages %}\n{{ m.content }}\n{% endfor %}",
    "system": "",
    "details": {"family": "llama"},
    "model_info": {"general.architecture": "llama", "llama.block_count": 16},
    "capabilities": ["completion", "tools"],
    "modified_at": "2026-11-20T10:11:12.123Z",
}
