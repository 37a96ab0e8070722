"""JSON keys of plugins and devices from earlier versions."""

from __future__ import annotations

from typing import Any

_OLD_NAMES = {"fix": "mend", "phase": "grain"}


def with_old_keys(row: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a JSON object that also has ``mend`` for ``fix`` and ``grain`` for ``phase``."""
    return row | {old: row[new] for new, old in _OLD_NAMES.items() if new in row}
