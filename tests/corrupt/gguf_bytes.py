"""GGUF files byte by byte, so that every one of them can be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import pack

U32, BOOL, STRING, ARRAY = 4, 7, 8, 9
F32, F16, Q8_0 = 0, 1, 8
ALIGNMENT = 32


def text(content: str | bytes) -> bytes:
    """A length and the bytes."""
    encoded = content.encode() if isinstance(content, str) else content
    return pack("<Q", len(encoded)) + encoded


def key(name: str | bytes, kind: int, value: bytes) -> bytes:
    """A key with a value of that type."""
    return text(name) + pack("<I", kind) + value


def listed(name: str, kind: int, values: Sequence[bytes], count: int | None = None) -> bytes:
    """A key with a list, which may state another ``count``."""
    stated = len(values) if count is None else count
    return key(name, ARRAY, pack("<IQ", kind, stated) + b"".join(values))


@dataclass(frozen=True)
class StatedTensor:
    """What a header states of a tensor; ``dimensions`` are in the order of the file."""

    name: str | bytes = "output_norm.weight"
    dimensions: tuple[int, ...] = (8,)
    kind: int = F32
    offset: int = 0

    def encoded(self) -> bytes:
        stated = pack(f"<I{len(self.dimensions)}Q", len(self.dimensions), *self.dimensions)
        return text(self.name) + stated + pack("<IQ", self.kind, self.offset)


ONE_TENSOR = (StatedTensor(),)


def gguf(
    keys: Sequence[bytes] = (),
    tensors: Sequence[StatedTensor] = ONE_TENSOR,
    *,
    version: int = 3,
    magic: bytes = b"GGUF",
    num_keys: int | None = None,
    num_tensors: int | None = None,
    data: bytes = bytes(32),
    alignment: int = ALIGNMENT,
) -> bytes:
    """A whole file; each number can be stated otherwise than it is."""
    counts = pack(
        "<QQ",
        len(tensors) if num_tensors is None else num_tensors,
        len(keys) if num_keys is None else num_keys,
    )
    stated = b"".join(tensor.encoded() for tensor in tensors)
    header = magic + pack("<I", version) + counts + b"".join(keys) + stated
    return header + bytes(-len(header) % alignment) + data
