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
_BY_STATUS: Mapping[int, type[LlmdError]] = {400: RequestError, 404: NotFoundError}


def error_of(body: Mapping[str, Any], status: int = 0) -> LlmdError:
    """Return the exception for a body with ``error``; ``status`` is that of the reply, 0 within a stream."""
    error = body.get("error")
    if isinstance(error, str):  # the form of Ollama's routes
        return _BY_STATUS.get(status, LlmdError)(error)
    if not isinstance(error, dict):
        return not_llmd()
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


def not_llmd() -> LlmdError:
    """Return the error for a reply that no daemon sends."""
    return LlmdError("the server at this address is not an llmd daemon", hint="check --host")
