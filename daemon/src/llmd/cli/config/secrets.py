"""Settings whose values are not shown: people paste the output of these commands into bug reports."""

from __future__ import annotations

from typing import Any

SECRETS = frozenset({"client.api_key"})
HIDDEN = "(hidden)"


def shown_value(key: str, value: Any) -> Any:
    """Return the value of a setting, or `HIDDEN` if it is a secret."""
    return HIDDEN if key in SECRETS and value else value
