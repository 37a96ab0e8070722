"""What a configuration calls the class of its model."""

from __future__ import annotations

from llmd.api.plugins import Config


def architecture_names(config: Config) -> tuple[str, ...]:
    """What a configuration calls its architecture.

    A ``model_type`` counts only where no class is named: an unknown class may compute something else with it.
    """
    stated = config.get("architectures")
    if isinstance(stated, list) and stated:
        return tuple(name for name in stated if isinstance(name, str))
    model_type = config.get("model_type")
    return (model_type,) if isinstance(model_type, str) else ()


def named_class(config: Config) -> str:
    """The first class that a configuration names, empty where it names none."""
    names = config.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""
