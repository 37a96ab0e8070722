"""Recognise the failures of a process that is out of memory, and report them as `MemoryBudgetError`."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from llmd.api.byte_size import format_bytes
from llmd.api.errors import MemoryBudgetError
from llmd.api.machine import address_space_limit

_REFUSALS = ("failed to map segment", "cannot allocate memory", "can't start new thread")
"""Messages of the library loader and of thread creation, which do not raise `MemoryError`."""


@contextmanager
def memory_errors() -> Iterator[None]:
    """Raise `MemoryBudgetError` for failures of the block that are caused by a lack of memory.

    Raises:
        MemoryBudgetError: there was not enough memory.
    """
    try:
        yield
    except (MemoryError, ImportError, RuntimeError, OSError) as error:
        refused = as_memory_error(error)
        if refused is None:
            raise
        raise refused from error


def as_memory_error(error: BaseException) -> MemoryBudgetError | None:
    """Return the out-of-memory error that a failure amounts to; None if it has another cause.

    With a limit on the address space (``ulimit -v``), loading a library or starting a thread can fail, too.
    """
    limit = address_space_limit()
    if limit is None:
        return _without_limit() if isinstance(error, MemoryError) else None
    return address_space_error(limit) if _is_refusal(error) else None


def address_space_error(limit: int) -> MemoryBudgetError:
    """Return the out-of-memory error of a process whose address space is limited to ``limit`` bytes."""
    return MemoryBudgetError(
        f"there is not enough memory: the address space of a process is limited to {format_bytes(limit)}",
        hint="raise the limit, as with `ulimit -v unlimited`; to limit memory, use --max-memory or a control group",
    )


def check_address_space(needed: int) -> None:
    """Check that the address space may grow to ``needed`` bytes: some libraries abort if an allocation fails.

    Raises:
        MemoryBudgetError: the limit of the address space is lower.
    """
    limit = address_space_limit()
    if limit is not None and limit < needed:
        raise address_space_error(limit)


def _without_limit() -> MemoryBudgetError:
    return MemoryBudgetError(
        "there is not enough memory",
        hint="end other programs, or limit what models may take with --max-memory",
    )


def _is_refusal(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, ImportError | RuntimeError):
        return any(text in str(error).lower() for text in _REFUSALS)
    return isinstance(error, MemoryError)
