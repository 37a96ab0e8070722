from __future__ import annotations

import inspect

from llmd.api import errors


def classes() -> list[type[errors.LlmdError]]:
    found = inspect.getmembers(errors, inspect.isclass)
    return [one for _, one in found if issubclass(one, errors.LlmdError)]


def test_the_drawn_tree_names_every_error() -> None:
    drawn = errors.__doc__ or ""
    assert [one.__name__ for one in classes() if one.__name__ not in drawn] == []


def test_message_and_hint_are_both_shown() -> None:
    assert str(errors.LlmdError("no room", hint="free some")) == "no room (free some)"
    assert str(errors.LlmdError("no room")) == "no room"


def test_a_checkpoint_error_names_file_and_tensor() -> None:
    error = errors.CheckpointError("is truncated", file="a.safetensors", tensor="head")
    assert error.message == "a.safetensors: head: is truncated"


def test_an_error_of_lost_devices_names_them() -> None:
    error = errors.DeviceLostError("they hang", devices=("gpu:0", "gpu:1"))
    assert error.message == "gpu:0, gpu:1: they hang"
    assert isinstance(error, errors.DeviceError)


def test_a_context_error_names_both_lengths() -> None:
    error = errors.ContextLengthError(5000, 4096)
    assert "5000" in error.message
    assert "4096" in error.message
    assert error.param == "messages"
    assert error.hint == "shorten the prompt, or use a model with a longer context"
    longer = errors.ContextLengthError(5000, 4096, longer_window="use a larger --max-ctx")
    assert longer.hint == "shorten the prompt, or use a larger --max-ctx"


def test_exit_codes_tell_kinds_apart() -> None:
    codes = {one.__name__: one.exit_code for one in classes()}
    assert codes["ConfigError"] == 2
    assert codes["NotFoundError"] == 3
    assert codes["NotPermittedError"] == 4
    assert codes["MemoryBudgetError"] == 5
    assert codes["DaemonUnreachableError"] == 6
    assert codes["LinkTimeoutError"] == 7
