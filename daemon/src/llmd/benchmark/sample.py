"""One request of a load."""

from __future__ import annotations

from msgspec import Struct


class Sample(Struct, frozen=True):
    """A prompt, as text or as token ids; how many tokens it has, and how many its answer may have."""

    prompt: str | tuple[int, ...]
    prompt_len: int
    output_len: int
