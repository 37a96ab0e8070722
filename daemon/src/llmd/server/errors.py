"""Errors that only the server raises."""

from __future__ import annotations

from llmd.api.errors import LlmdError, NotFoundError


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
