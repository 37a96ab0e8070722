"""What the sockets of a link carry."""

from __future__ import annotations

import struct

RECORD = struct.Struct("<QQ")
"""Where a frame begins in the shared memory, and its bytes."""

RELEASED = b"r"
"""Says that the oldest frame was released."""
