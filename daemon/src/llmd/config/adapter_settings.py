"""The setting ``lora``: LoRA adapters by the names that requests use, each with its directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import structs

from llmd.api.errors import ConfigError
from llmd.config.setting_values import Origin, setting_name
from llmd.config.sources import Settings, with_origins

LORA = "server.lora"


def adapters_of(settings: Settings, model: str) -> dict[str, str]:
    """Return the directories of a model's adapters by name.

    Those that are set for all models are not among them: see `with_adapters`.

    Raises:
        ConfigError: an entry is not written as ``NAME=DIR``, or two have the same name.
    """
    origin = settings.models.get(model, {}).get(LORA)
    return {} if origin is None else _parsed(origin, model)


def all_adapters(settings: Settings) -> dict[str, tuple[str, str]]:
    """Return model and directory of each adapter, by the adapter's name.

    Raises:
        ConfigError: an entry is malformed, or two models have an adapter of the same name.
    """
    found: dict[str, tuple[str, str]] = {}
    for model in settings.models:
        for name, directory in adapters_of(settings, model).items():
            if name in found:
                origin = settings.models[model][LORA]
                raise origin.placed(
                    ConfigError(
                        f"{setting_name(LORA, model)} from {origin.place}: {found[name][0]} has an adapter "
                        f"{name}, too",
                        hint="give each adapter a name of its own: requests choose it by its name",
                    )
                )
            found[name] = model, directory
    return found


def with_adapters(settings: Settings, served: Sequence[str]) -> Settings:
    """Return the settings with adapters that are set for all models at the only served model.

    ``served`` are the names of the models that the command or the setting ``load`` names.

    Raises:
        ConfigError: there are such adapters, and not exactly one model is served.
    """
    origin = settings.origins[LORA]
    if not origin.value:
        return settings
    if len(served) != 1:
        raise origin.placed(
            ConfigError(
                f"lora from {origin.place} does not say which of {len(served)} models its adapters are for",
                hint='name one model, or set `lora` in the tables [models."NAME"] of config.toml',
            )
        )
    (model,) = served
    own: Mapping[str, Origin] = {**settings.models.get(model, {}), LORA: origin}
    # A table that has adapters of its own adds them, unless a flag has replaced its value.
    before = settings.models.get(model, {}).get(LORA)
    if before is not None and before != origin:
        own = {**own, LORA: structs.replace(origin, value=(*before.value, *origin.value))}
    cleared = with_origins(settings, {**settings.origins, LORA: structs.replace(origin, value=())})
    return structs.replace(cleared, models={**settings.models, model: own})


def _parsed(origin: Origin, model: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in origin.value:
        name, equals, directory = text.partition("=")
        if not (name.strip() and equals and directory.strip()) or name.strip() in found:
            why = "names an adapter twice" if name.strip() in found else "is not an adapter"
            raise origin.placed(
                ConfigError(
                    f"{setting_name(LORA, model)} from {origin.place}: {text!r} {why}",
                    hint="write NAME=DIR, with the directory of adapter_config.json, or NAME=FILE.gguf",
                )
            )
        found[name.strip()] = str(Path(directory.strip()).expanduser().absolute())
    return found
