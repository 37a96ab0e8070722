"""Failures for lack of memory become a clear error."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys

import pytest

from llmd.api.errors import MemoryBudgetError
from llmd.api.machine import address_space_limit
from llmd.api.out_of_memory import as_memory_error, check_address_space, memory_errors

REFUSED = [
    MemoryError(),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    ImportError("libgomp.so.1: failed to map segment from shared object"),
    RuntimeError("can't start new thread"),
]
OTHER = [
    OSError(errno.ENOSPC, "No space left"),
    ImportError("No module named 'x'"),
    RuntimeError("x"),
    ValueError(),
]


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the address space is limited to 400 MiB; a real limit would also hold for other tests."""
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (400 << 20, resource.RLIM_INFINITY))


@pytest.mark.parametrize("error", REFUSED, ids=repr)
def test_under_a_limit_failures_for_lack_of_addresses_name_it(limited: None, error: Exception) -> None:
    found = as_memory_error(error)
    assert isinstance(found, MemoryBudgetError)
    assert "limited to 400.0 MiB" in found.message
    assert "ulimit -v unlimited" in found.hint


@pytest.mark.parametrize("error", OTHER, ids=repr)
def test_other_failures_stay_what_they_are(limited: None, error: Exception) -> None:
    assert as_memory_error(error) is None
    with pytest.raises(type(error)), memory_errors():
        raise error


def test_without_a_limit_only_a_memory_error_is_one() -> None:
    assert address_space_limit() is None
    assert [as_memory_error(error) is not None for error in REFUSED] == [True, False, False, False]
    with pytest.raises(MemoryBudgetError, match="there is not enough memory"), memory_errors():
        raise MemoryError


def test_what_is_needed_is_compared_with_the_limit(limited: None) -> None:
    check_address_space(400 << 20)
    with pytest.raises(MemoryBudgetError, match=r"400\.0 MiB"):
        check_address_space((400 << 20) + 1)


def test_a_limit_of_the_shell_ends_a_command_with_a_message() -> None:
    command = f"ulimit -v 200000; exec {sys.executable} -m llmd.cli.main list"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (MemoryBudgetError.exit_code, "")
    assert done.stderr.startswith(
        "llmd: there is not enough memory: the address space of a process is limited to 195.3 MiB"
    )
    assert "Traceback" not in done.stderr
