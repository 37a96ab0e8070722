"""The class names in a model's configuration."""

from __future__ import annotations

from llmd.api.plugins import Config


def architecture_names(config: Config) -> tuple[str, ...]:
    """Return the architecture names of a configuration.

    ``model_type`` counts only if no class is named: an unknown class of that type may compute something else.
    """
    model_type = config.get("model_type")
    return tuple(config.get("architectures") or ([model_type] if model_type else ()))


def named_class(config: Config) -> str:
    """Return the first class that a configuration names, or an empty string."""
    return next(iter(config.get("architectures") or ()), "")
