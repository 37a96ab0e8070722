"""The errors of a daemon's replies as exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmd.api.errors import (
    ConflictError,
    ContextLengthError,
    DiskSpaceError,
    EngineCrashedError,
    HubError,
    LlmdError,
    MemoryBudgetError,
    NotFoundError,
    RequestError,
)

EXIT_REFUSED = 4
_ERRORS: Mapping[str, type[LlmdError]] = {
    "engine_crashed": EngineCrashedError,
    "out_of_memory": MemoryBudgetError,
    "out_of_disk": DiskSpaceError,
    "hub_failed": HubError,
    "conflict": ConflictError,
    "model_not_found": NotFoundError,
    "invalid_request_error": RequestError,
    "not_found_error": NotFoundError,
}
_SET_KEY = "set LLMD_API_KEY, or api_key in config.toml, to a key from the server's owner"
_KEY_ERRORS: Mapping[str, tuple[str, str]] = {
    "missing_api_key": ("an API key is required", f"{_SET_KEY}, who makes it with `llmd keys add NAME`"),
    "invalid_api_key": (
        "this API key is unknown to the server",
        f"{_SET_KEY}; `llmd keys list` there names all",
    ),
    "local_only": (
        "only the server's own machine may manage it without a key",
        f"{_SET_KEY}, who makes it with `llmd keys add NAME --manage`",
    ),
    "key_lacks_right": (
        "this API key may not manage the server",
        f"{_SET_KEY}, who makes it with `llmd keys add NAME --manage`",
    ),
}
"""What a refused key means for the user of a client, who is often not the server's owner."""
_UNAUTHORIZED = 401
_BY_STATUS: Mapping[int, type[LlmdError]] = {400: RequestError, 404: NotFoundError}


def error_of(body: Mapping[str, Any], status: int = 0) -> LlmdError:
    """Return the exception for a body with ``error``; ``status`` is that of the reply, 0 within a stream."""
    error = body.get("error")
    if isinstance(error, str):  # the form of Ollama's routes
        return _of_text(error, status)
    if not isinstance(error, dict):
        return not_llmd()
    if error.get("code") in _KEY_ERRORS:
        return _key_error(error["code"])
    kind = _ERRORS.get(str(error.get("code"))) or _ERRORS.get(str(error.get("type"))) or LlmdError
    if "n_ctx" in error:
        too_long = ContextLengthError(error["n_prompt_tokens"], error["n_ctx"], param=str(error["param"]))
        too_long.message, too_long.hint = str(error["message"]), ""  # the daemon knows what helps
        return too_long
    if kind is RequestError:
        return RequestError(str(error["message"]), param=error.get("param"))
    found = kind(str(error["message"]))
    if error.get("type") in {"permission_error", "authentication_error"}:
        found.exit_code = EXIT_REFUSED
    return found


def _of_text(message: str, status: int) -> LlmdError:
    if status == _UNAUTHORIZED:
        return _key_error("invalid_api_key" if "unknown" in message else "missing_api_key")
    return _BY_STATUS.get(status, LlmdError)(message)


def _key_error(code: str) -> LlmdError:
    message, hint = _KEY_ERRORS[code]
    refused = LlmdError(message, hint=hint)
    refused.exit_code = EXIT_REFUSED
    return refused


def not_llmd() -> LlmdError:
    """Return the error for a reply that no daemon sends."""
    return LlmdError("the server at this address is not an llmd daemon", hint="check --host")
