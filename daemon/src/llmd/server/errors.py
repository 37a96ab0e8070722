"""Errors that only the server raises."""

from __future__ import annotations

from llmd.api.errors import LlmdError, NotFoundError


class UnavailableError(LlmdError):
    """The daemon cannot answer now. ``code`` says why. ``retry_after_s``: None if a retry does not help."""

    def __init__(self, message: str, *, code: str, hint: str = "", retry_after_s: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.retry_after_s = retry_after_s


class ParserMissingError(UnavailableError):
    """The model needs a parser of a plugin that failed or is disabled."""


class BusyError(LlmdError):
    """The server is at capacity. ``code`` names the limit; ``retry_after_s`` estimates when there is room."""

    def __init__(self, message: str, *, code: str, hint: str, retry_after_s: int) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.retry_after_s = retry_after_s


class RateLimitError(BusyError):
    """The client has reached its limit; others are still served."""


class DeadlineError(LlmdError):
    """The request did not finish within the time limit of the client or the server."""

    exit_code = 7


class CancelledRequestError(LlmdError):
    """The request was cancelled by someone who manages the daemon."""


class ForbiddenError(LlmdError):
    """The client may not do this; ``code`` names the check that refused it."""

    exit_code = 4
    key = ""
    """The name of the API key that it sent; empty if it sent none."""

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


class UnauthorizedError(LlmdError):
    """The API key is missing or unknown; ``code`` says which."""

    exit_code = 4

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


class UnknownRequestError(NotFoundError):
    """No request with this id runs or waits."""


class UnknownModelError(NotFoundError):
    """No model has the name ``asked``, which a dialect may put into its own message."""

    def __init__(self, message: str, *, asked: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.asked = asked
