"""The message that loads a model, made from the engine's settings."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import structs

from llmd.api.errors import ConfigError
from llmd.api.messages import Load, StageSpec
from llmd.config import EngineConfig, Settings
from llmd.config.adapter_settings import adapters_of
from llmd.config.schema import AS_STORED, BUDGET, STAGE, STREAMED
from llmd.config.values import parse_bytes


def load_message_of(name: str, directory: Path, settings: Settings) -> Load:
    """Return the message that loads a model with the settings for ``name``; raises like `load_message`."""
    is_default, config = not settings.is_explicit("engine.quant", name), settings.of_model(name)
    load = load_message(directory, config.engine, quant_is_default=is_default)
    load = structs.replace(load, adapters=adapters_of(settings, name))
    budgets = config.server.models.memory_budget
    return load.within(parse_budgets(budgets)) if budgets else load


def load_message(directory: Path, config: EngineConfig, *, quant_is_default: bool = False) -> Load:
    """Return the message that loads the model in ``directory``.

    ``quant_is_default``: nobody has asked to quantise this model; `Load.quant_is_default` says what follows.

    Raises:
        ConfigError: ``split`` is malformed, or two settings divide the layers.
    """
    _check_division(config)
    return Load(
        directory=str(directory),
        device=config.device,
        stages=parse_split(config.split) if config.split else (),
        gpu_layers=config.gpu_layers,
        cpu_experts=config.cpu_experts,
        context_len=config.max_ctx,
        slots=config.slots,
        chunk_len=config.prefill_chunk,
        quant=None if config.quant == AS_STORED else config.quant,
        quant_is_default=quant_is_default,
        activations=config.activations,
        kv_dtype=config.kv_dtype,
        kv_memory=config.kv_memory,
        kv_spool=config.kv_spool,
        threads=config.threads,
        weight_cache=config.weight_cache,
    )


def _check_division(config: EngineConfig) -> None:
    flags = {
        "--split": config.split or None,
        "--gpu-layers": config.gpu_layers,
        "--cpu-experts": config.cpu_experts,
    }
    named = [flag for flag, value in flags.items() if value is not None]
    if len(named) > 1:
        raise ConfigError(
            f"{named[0]} and {named[1]} are both set",
            hint="leave one of them out; --split names every part of the model",
        )


def parse_budgets(text: str) -> dict[str, int]:
    """Parse sizes such as ``cuda:0=20GiB,cuda:1=8GiB``; returns bytes by device.

    Raises:
        ConfigError: the text is malformed. The engine checks whether there are such devices.
    """
    return dict(_budget(part.strip(), text) for part in text.split(","))


def _budget(part: str, text: str) -> tuple[str, int]:
    match = re.fullmatch(BUDGET, part)
    if match is None:
        raise ConfigError(
            f"--memory-budget {text!r}: {part!r} is not a device and a size",
            hint="write sizes as cuda:0=20GiB,cuda:1=8GiB",
        )
    return match[1], parse_bytes(match[2])


def parse_split(text: str) -> tuple[StageSpec, ...]:
    """Parse stages such as ``embed-3=cpu,4-7=cuda:0/stream`` (`StageSpec`); a range includes its last part.

    Raises:
        ConfigError: the text is malformed. The engine checks whether the parts fit the model.
    """
    return tuple(_stage(part.strip(), text) for part in text.split(","))


def _stage(part: str, text: str) -> StageSpec:
    match = re.fullmatch(STAGE, part)
    if match is None:
        raise ConfigError(
            f"--split {text!r}: {part!r} is not a stage",
            hint="write stages as 0-3=cpu,4-7=reference or embed=cpu,0-7=reference,head=cpu",
        )
    device = match[3].removesuffix(STREAMED)
    return StageSpec(device, match[1], match[2] or match[1], streamed=device != match[3])
