"""Converts errors of an engine to messages and back."""

from __future__ import annotations

from llmd.api import errors
from llmd.api.errors import CheckpointError, ContextLengthError, DeviceLostError, LlmdError, RequestError
from llmd.api.results import Failed


def failure(request_id: int | None, error: LlmdError) -> Failed:
    """Return an error as the message that reports it."""
    return Failed(request_id, type(error).__name__, error.message, error.hint)


def error_of(failed: Failed) -> LlmdError:
    """Return the error that an engine reported, as an instance of the original class."""
    known = getattr(errors, failed.error, LlmdError)
    if not (isinstance(known, type) and issubclass(known, LlmdError)):
        known = LlmdError
    if issubclass(known, CheckpointError):
        file, _, rest = failed.message.partition(": ")
        return CheckpointError(rest, file=file, hint=failed.hint)
    if issubclass(known, DeviceLostError):
        names, _, rest = failed.message.partition(": ")
        return DeviceLostError(rest, devices=tuple(names.split(", ")), hint=failed.hint)
    if issubclass(known, ContextLengthError):
        return RequestError(failed.message, param="messages", hint=failed.hint)
    return known(failed.message, hint=failed.hint)
