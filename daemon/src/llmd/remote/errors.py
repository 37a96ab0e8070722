"""Errors that cross from one process to another, with their class and their attributes."""

from __future__ import annotations

import builtins
from typing import Any

import msgspec

from llmd.api import errors
from llmd.api.errors import DeviceError, LlmdError
from llmd.api.out_of_memory import as_memory_error

_PASSED_ON = (ValueError, NotImplementedError)
"""Built-in errors that the contract of stages and devices names."""


class ErrorReport(msgspec.Struct, frozen=True):
    """An error, without its traceback."""

    kind: str
    """Name of its class: one of `llmd.api.errors`, or a built-in."""
    arguments: tuple[str, ...]
    """``Exception.args``."""
    attributes: dict[str, str | int | tuple[str, ...] | None] = {}
    """What its class adds, such as ``hint`` and ``devices``."""


def report_of(error: Exception) -> ErrorReport:
    """Return an error as a report. Errors that the contract does not name become `DeviceError`."""
    error = as_memory_error(error) or error
    if isinstance(error, LlmdError):
        known = next(one for one in type(error).__mro__ if getattr(errors, one.__name__, None) is one)
        attributes = {name: _plain(value) for name, value in vars(error).items()}
        return ErrorReport(known.__name__, tuple(map(str, error.args)), attributes)
    if isinstance(error, _PASSED_ON):
        known = next(one for one in type(error).__mro__ if one in _PASSED_ON)
        return ErrorReport(known.__name__, tuple(map(str, error.args)))
    return report_of(DeviceError(f"the device raised {type(error).__name__}: {error}", hint="see the log"))


def error_of(report: ErrorReport) -> Exception:
    """Return the error that was reported, as an instance of its class."""
    known: Any = getattr(errors, report.kind, None) or getattr(builtins, report.kind, None)
    if not (isinstance(known, type) and issubclass(known, (LlmdError, *_PASSED_ON))):
        known = DeviceError
    # Not through its constructor: each class has another one.
    error: Exception = known.__new__(known, *report.arguments)
    error.args = report.arguments
    vars(error).update(report.attributes)
    return error


def _plain(value: object) -> str | int | tuple[str, ...] | None:
    if value is None or isinstance(value, str | int):
        return value
    return tuple(map(str, value)) if isinstance(value, tuple) else str(value)
