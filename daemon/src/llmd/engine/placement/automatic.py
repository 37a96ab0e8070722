"""Choose the devices of a load if its settings leave the choice to llmd."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence

from msgspec import structs

from llmd.api.device import HOST_MEMORY
from llmd.api.errors import ConfigError, LlmdError, MemoryBudgetError, NotFoundError, PluginError
from llmd.api.messages import Load, StageSpec
from llmd.api.streaming import may_stream
from llmd.engine.placement.cached_experts import CachedExperts, cards_with_cached_experts
from llmd.engine.placement.candidates import Candidate, MachineDevices
from llmd.engine.placement.default_quant import with_default_quant
from llmd.engine.placement.expert_share import with_expert_share
from llmd.engine.placement.memory_need import needs_of
from llmd.engine.placement.model_problem import ModelOnDevices
from llmd.engine.placement.stages import (
    StageParts,
    cpu_expert_parts,
    first_gpu_part,
    lower_stage,
    part_names,
    refuses,
)
from llmd.host.devices import DeviceState
from llmd.models.dependent_parts import dependent_parts
from llmd.models.open_model import OpenModel
from llmd.placement.planner import best_plan
from llmd.placement.problem import Plan


def with_devices(load: Load, model: OpenModel, devices: MachineDevices) -> Load:
    """Return the load with the devices and stages that it gets, as far as it leaves them open, and with the
    share of the experts for which they have room.

    A model runs on the devices that answer fastest by their measured rates, or on a card that keeps some of
    the experts in main memory if that is faster. Until all are measured, the first
    one that has room gets the whole model; only if it has no room, the devices are measured now. If the model
    fits nowhere, it goes to the first device, so that loading it says what is missing.

    Raises:
        NotFoundError: there is no such device, or no usable one.
        PluginError: a named device cannot be used; the message says why.
        ConfigError: there is no graphics card for `Load.division`, it divides parts that stay together, or
            the model has no experts.
        MemoryBudgetError: that many layers do not fit.
        LlmdError: the model cannot be loaded in the formats that are asked for.
    """
    return with_expert_share(_with_stages(load, model, devices), model, devices)


def _with_stages(load: Load, model: OpenModel, devices: MachineDevices) -> Load:
    load = with_own_names(load, devices)
    if load.stages:
        return load
    if load.division:
        return _divided(load, model, devices)
    usable = devices.usable(device_names(load.device))
    whole = structs.replace(load, device=usable[0].info.name)
    if len(usable) == 1 and not may_stream(usable[0].info):
        return whole
    asked, opened = with_default_quant(whole, model)
    candidates = devices.measured(usable)
    if len(candidates) < len(usable):
        if has_room(asked, opened, usable[0], devices.room(usable[0])):
            return whole
        candidates = devices.measure(usable)
    return _fastest(load, asked, opened, candidates) or whole


def _fastest(load: Load, asked: Load, model: OpenModel, candidates: Sequence[Candidate]) -> Load | None:
    """Return the load with the fastest choice of its devices; None if nothing fits.

    ``asked`` and ``model`` come from `with_default_quant`.
    """
    if not candidates:
        return None
    found, plan = _planned(asked, model, candidates)
    cached = min(cards_with_cached_experts(asked, model, candidates), key=_seconds, default=None)
    if cached and (plan is None or cached.seconds < plan.choice.seconds):
        return structs.replace(load, device=cached.load.device, expert_share=cached.load.expert_share)
    return _on_stages(load, model, found.stages(plan.choice.devices)) if plan else None


def _seconds(cached: CachedExperts) -> float:
    return cached.seconds


def with_own_names(load: Load, devices: MachineDevices) -> Load:
    """Return a load that calls devices by `DeviceInfo.name`, without options of devices that are not there.

    Raises:
        NotFoundError: it asks for a device that is not there.
        PluginError: the device cannot be used; the message says why.
    """
    names = [devices.info(name).name for name in device_names(load.device)]
    options = {}
    for name, one in load.device_options.items():
        with contextlib.suppress(NotFoundError, PluginError):
            options[devices.info(name).name] = one
    stages = [structs.replace(stage, device=devices.info(stage.device).name) for stage in load.stages]
    return structs.replace(
        load, device=",".join(names) or load.device, stages=tuple(stages), device_options=options
    )


def _divided(load: Load, model: OpenModel, devices: MachineDevices) -> Load:
    """Return the load with its layers divided as `Load.division` says."""
    named, all_usable = devices.usable(device_names(load.device)), devices.usable()
    cards = [device for device in named if device.info.memory_id != HOST_MEMORY]
    hosts = [device for device in all_usable if device.info.memory_id == HOST_MEMORY]
    flag, _, _ = load.division.partition(" ")
    if not cards:
        raise ConfigError(
            f"{load.division}: no graphics card can be used",
            hint=f"`llmd devices` says why; leave {flag} out to use the processor",
        )
    _check_division(load, model, flag)
    asked, opened = with_default_quant(load, model)
    stages = planned_stages(asked, opened, devices.measure([*cards, *hosts]))
    if not stages:
        names = " and ".join(device.info.name for device in cards)
        change = "lower" if load.cpu_experts is None else "raise"
        raise MemoryBudgetError(
            f"{load.division}: {names} and main memory have no room for this division",
            hint=f"{change} {flag}, or leave it out: then as many are used as there is room for",
        )
    return _on_stages(load, model, stages) or load


def _check_division(load: Load, model: OpenModel, flag: str) -> None:
    """Refuse a division that separates parts which depend on each other, and one of experts without any."""
    plan = model.plan
    on_cards = set(range(first_gpu_part(plan, load.gpu_layers or 0), len(plan.parts)))
    if load.cpu_experts is not None:
        if not cpu_expert_parts(plan, len(plan.parts)):
            raise ConfigError(
                f"{load.division}: the model has no experts", hint=f"leave {flag} out, or use --gpu-layers"
            )
        on_cards = set(range(len(plan.parts))) - cpu_expert_parts(plan, load.cpu_experts)
    for part, reason in dependent_parts(plan).items():
        if (part in on_cards) != (part - 1 in on_cards):
            raise ConfigError(
                f"{load.division} divides parts that must be on one device: {reason}",
                hint=f"use more or fewer layers, or leave {flag} out",
            )


def _on_stages(load: Load, model: OpenModel, stages: Sequence[StageParts]) -> Load | None:
    """Return the load with these stages; None if there are none."""
    if not stages:
        return None
    if len(stages) == 1 and not stages[0].streamed:
        return structs.replace(load, device=stages[0].device)
    return structs.replace(load, stages=_named(model, stages))


def device_names(text: str) -> tuple[str, ...]:
    """Return the devices of `Load.device`, in order; none for ``auto``."""
    return () if text == "auto" else tuple(name.strip() for name in text.split(","))


def planned_stages(load: Load, model: OpenModel, candidates: Sequence[Candidate]) -> tuple[StageParts, ...]:
    """Return the stages of the fastest choice that fits; none if none fits.

    If there is no room for the keys and values of all slots, the choice has room for those of one sequence.
    """
    if not candidates:
        return ()
    found, plan = _planned(load, model, candidates)
    return found.stages(plan.choice.devices) if plan else ()


def _planned(
    load: Load, model: OpenModel, candidates: Sequence[Candidate]
) -> tuple[ModelOnDevices, Plan | None]:
    found = ModelOnDevices(load, model, candidates)
    return found, best_plan(found.problem()) or best_plan(found.problem(kv_slots=1))


def has_room(load: Load, model: OpenModel, device: DeviceState, room_bytes: int) -> bool:
    """Whether a device can run the whole model, and has room for it."""
    whole = StageParts(device.info.name, 0, len(model.plan.parts))
    try:
        needs = needs_of(load, model, lambda _name: device.info)
    except LlmdError:
        return False
    return not refuses(load, device.info, lower_stage(load, model, device.info, whole)) and all(
        need.total_bytes <= room_bytes for need in needs.values()
    )


def _named(model: OpenModel, stages: Sequence[StageParts]) -> tuple[StageSpec, ...]:
    """Return stages as settings name them."""
    specs = []
    for stage in stages:
        parts = range(stage.first_part, stage.last_part)
        for streamed, run in itertools.groupby(parts, stage.streamed.__contains__):
            first, *rest = run
            names = part_names(model.plan, first, [first, *rest][-1] + 1)
            specs.append(StageSpec(stage.device, names[0], names[-1], streamed))
    return tuple(specs)
