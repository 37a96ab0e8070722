"""JSON on one line."""

from __future__ import annotations

from typing import Any

import msgspec

_encoder = msgspec.json.Encoder()


def encode_json(value: Any) -> bytes:
    """Encode a value as one line of UTF-8. JavaScript's line separators are escaped; NaN becomes null."""
    return _encoder.encode(value).replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")
