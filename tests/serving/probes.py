"""What clients of Ollama ask before anything else, as they were seen to send it."""

from __future__ import annotations

from typing import Any

Sent = tuple[str, str, Any]

OLLAMA_CLI: tuple[Sent, ...] = (
    ("HEAD", "/", None),
    ("GET", "/api/version", None),
    ("POST", "/api/show", {"model": "tiny"}),
    ("GET", "/api/ps", None),
    ("GET", "/api/status", None),
    ("POST", "/api/generate", {"model": "tiny", "prompt": "", "options": {}, "keep_alive": None}),
)
OPEN_WEBUI: tuple[Sent, ...] = (
    ("GET", "/api/version", None),
    ("GET", "/api/tags", None),
    ("GET", "/api/ps", None),
    ("GET", "/v1/models", None),
)
VS_CODE: tuple[Sent, ...] = (
    ("GET", "/api/version", None),
    ("GET", "/api/tags", None),
    ("POST", "/api/show", {"model": "tiny"}),
    (
        "POST",
        "/v1/chat/completions",
        {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "stream": True, "max_tokens": 4},
    ),
)
