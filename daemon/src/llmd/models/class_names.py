"""What a configuration calls the class of its model."""

from __future__ import annotations

from llmd.api.plugins import Config


def architecture_names(config: Config) -> tuple[str, ...]:
    """What a configuration calls its architecture.

    A ``model_type`` counts only where no class is named: an unknown class may compute something else with it.
    """
    model_type = config.get("model_type")
    return tuple(config.get("architectures") or ([model_type] if model_type else ()))


def named_class(config: Config) -> str:
    """The first class that a configuration names, empty where it names none."""
    return next(iter(config.get("architectures") or ()), "")
