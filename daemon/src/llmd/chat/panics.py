"""Panics of the Rust libraries that run tokenizers. Files can cause them, and they are no `Exception`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llmd.api.errors import TokenizerError

# The libraries do not export the class; each has one of its own.
_PANIC = "PanicException"


@contextmanager
def panics_refused(what: str) -> Iterator[None]:
    """Raises `TokenizerError`, with ``what`` failed, where the library panics."""
    try:
        yield
    except BaseException as exc:
        if type(exc).__name__ != _PANIC:
            raise
        raise TokenizerError(
            f"{what} fails in the library that runs it: {exc}",
            hint="the tokenizer files are damaged; copy them again from their model",
        ) from exc
