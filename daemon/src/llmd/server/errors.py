"""Errors that only the front raises, and engine errors made anew from their names."""

from __future__ import annotations

from llmd.api import errors
from llmd.api.errors import CheckpointError, ContextLengthError, LlmdError, NotFoundError, RequestError
from llmd.api.messages import Failed


class UnavailableError(LlmdError):
    """The daemon cannot answer now. ``code`` says why; ``retry_after_s`` None means that waiting does not help."""

    def __init__(self, message: str, *, code: str, hint: str = "", retry_after_s: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.retry_after_s = retry_after_s


class BusyError(LlmdError):
    """The server has as much to do as it takes. ``code`` says which limit refused; ``retry_after_s`` is when there will be room."""

    def __init__(self, message: str, *, code: str, hint: str, retry_after_s: int) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.retry_after_s = retry_after_s


class RateLimitError(BusyError):
    """The sender has its share already; others are still served."""


class DeadlineError(LlmdError):
    """The request was not done in the time that it, or the server, allows."""

    exit_code = 7


class ForbiddenError(LlmdError):
    """The sender may not ask this; ``code`` says which check refused."""

    exit_code = 4

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


class UnauthorizedError(LlmdError):
    """The sender did not say who it is, or nobody of that key is known; ``code`` says which."""

    exit_code = 4

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


class UnknownModelError(NotFoundError):
    """No model has the name ``asked``; a dialect may say it in its clients' words."""

    def __init__(self, message: str, *, asked: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.asked = asked


def from_engine(failed: Failed) -> LlmdError:
    """The error that an engine reported, as an object of its class."""
    known = getattr(errors, failed.error, LlmdError)
    if not (isinstance(known, type) and issubclass(known, LlmdError)):
        known = LlmdError
    if issubclass(known, CheckpointError):
        file, _, rest = failed.message.partition(": ")
        return CheckpointError(rest, file=file, hint=failed.hint)
    if issubclass(known, ContextLengthError):
        return RequestError(failed.message, param="messages", hint=failed.hint)
    return known(failed.message, hint=failed.hint)


class BadRequestError(RequestError):
    """A request that is refused, with the API's ``code`` for it."""

    def __init__(self, message: str, *, code: str, param: str | None = None, hint: str = "") -> None:
        super().__init__(message, param=param, hint=hint)
        self.code = code
