"""JSON files that a person names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from llmd.api.errors import LlmdError

MAX_BYTES = 1 << 20


def read_json(path: Path) -> Any:
    """Return what is in a file.

    Raises:
        LlmdError: it cannot be read, is larger than a person writes, or is not JSON.
    """
    try:
        with path.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise LlmdError(f"{path} is larger than {MAX_BYTES >> 20} MiB", hint="check the path")
        return msgspec.json.decode(content)
    except OSError as error:
        raise LlmdError(f"{path} cannot be read: {error.strerror}", hint="check the path") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LlmdError(f"{path} is not JSON: {error}", hint="check the path") from error
