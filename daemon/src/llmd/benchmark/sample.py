"""One request of a load."""

from __future__ import annotations

from msgspec import Struct


class Sample(Struct, frozen=True):
    """A prompt and the length of its answer."""

    prompt: str | tuple[int, ...]
    """Text or token ids."""
    prompt_len: int
    """In tokens."""
    output_len: int
    """Maximum length of the answer in tokens."""
