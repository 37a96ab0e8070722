"""Convert unusual failures of tokenizer libraries into `TokenizerError`.

Damaged files can make the Rust libraries panic; a panic is not an `Exception`. None of the libraries accepts
lone surrogates, which JSON can express.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llmd.api.errors import TokenizerError

# Each library has its own class of this name and does not export it.
_PANIC = "PanicException"


@contextmanager
def panics_refused(what: str) -> Iterator[None]:
    """Raise `TokenizerError` about ``what`` if a library panics or finds a lone surrogate."""
    try:
        yield
    except BaseException as exc:
        if type(exc).__name__ != _PANIC and not isinstance(exc, UnicodeEncodeError):
            raise
        raise TokenizerError(
            f"{what} fails in the library that runs it: {exc}",
            hint="the tokenizer files are damaged; copy them again from their model",
        ) from exc
