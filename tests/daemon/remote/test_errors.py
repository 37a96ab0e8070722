"""Errors keep their class, their text and what their class adds."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from llmd.api.errors import (
    CheckpointError,
    ConfigError,
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    LlmdError,
    MemoryBudgetError,
)
from llmd.remote.errors import ErrorReport, error_of, report_of


def crossed(error: Exception) -> Exception:
    report = msgspec.msgpack.decode(msgspec.msgpack.encode(report_of(error)), type=ErrorReport)
    return error_of(report)


@pytest.mark.parametrize(
    "error",
    [
        DeviceLostError("it hangs", devices=("a", "b"), hint="reset it"),
        DeviceMemoryError("it is full", hint="use less"),
        MemoryBudgetError("does not fit"),
        CheckpointError("is cut off", file="model.safetensors", tensor="w", hint="copy it again"),
        ValueError("a wrong shape"),
        NotImplementedError("no blocks"),
    ],
)
def test_an_error_stays_what_it_is(error: Exception) -> None:
    found = crossed(error)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert {**vars(found)} == {**vars(error)}


def test_a_path_becomes_text() -> None:
    error = ConfigError("wrong")
    error.file = Path("a.toml")
    assert vars(crossed(error))["file"] == "a.toml"


class OwnError(DeviceMemoryError):
    """An error of a plugin."""


def test_an_error_of_a_plugin_becomes_what_it_is_derived_from() -> None:
    found = crossed(OwnError("it is full", hint="use less"))
    assert type(found) is DeviceMemoryError
    assert isinstance(found, LlmdError)
    assert found.hint == "use less"


class OwnValueError(ValueError):
    """An error of a toolkit."""


def test_other_errors_are_errors_of_the_device() -> None:
    assert type(crossed(OwnValueError("shape"))) is ValueError
    found = crossed(KeyError("kernel"))
    assert type(found) is DeviceError
    assert "KeyError: 'kernel'" in str(found)
    assert type(crossed(MemoryError())) is MemoryBudgetError


def test_an_unknown_class_is_an_error_of_the_device() -> None:
    for kind in ("KeyboardInterrupt", "no such class", "Path"):
        assert type(error_of(ErrorReport(kind, ("it broke",)))) is DeviceError
