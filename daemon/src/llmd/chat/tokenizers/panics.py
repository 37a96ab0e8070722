"""What files can make the libraries that run tokenizers raise, beside their own errors.

Panics of those in Rust are no `Exception`. Lone surrogates, which JSON can spell, are no text for any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llmd.api.errors import TokenizerError

# The libraries do not export the class; each has one of its own.
_PANIC = "PanicException"


@contextmanager
def panics_refused(what: str) -> Iterator[None]:
    """Raises `TokenizerError`, saying that ``what`` failed, where a library panics or meets a lone surrogate."""
    try:
        yield
    except BaseException as exc:
        if type(exc).__name__ != _PANIC and not isinstance(exc, UnicodeEncodeError):
            raise
        raise TokenizerError(
            f"{what} fails in the library that runs it: {exc}",
            hint="the tokenizer files are damaged; copy them again from their model",
        ) from exc
