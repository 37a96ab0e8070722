"""Says in which ways a model does not run as it should: what was asked for, and what is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from llmd.api.byte_size import format_bytes
from llmd.api.device import HOST_MEMORY, DeviceInfo
from llmd.engine.placement.prediction import Prediction
from llmd.server.telemetry.device_times import device_times
from llmd.server.telemetry.model_facts import ModelFacts, State, Verdict

LEAST_STEPS = 10
"""Fewer steps say nothing about the speed of a device."""
SLOWER = 1.5
"""Steps that take this many times as long as predicted are slow; predictions are within 30 %."""
LEAST_LOSS_S = 0.002
"""What the host adds to the steps of small models is not the device's fault."""
MORE_MEMORY = 1.1
LESS_MEMORY = 0.9
LEAST_MEMORY = 64 << 20
"""Bytes that drivers may take for themselves."""
BUSY_PROCESSORS = 0.5
"""Processors in use by other programs that explain slow steps."""


def _spilled(facts: ModelFacts) -> Iterator[Verdict]:
    """Report parts on other devices if one device would be faster and only its memory was short."""
    loaded, prediction = facts.loaded, facts.prediction
    if loaded is None or prediction is None or _is_divided_by_user(facts):
        return
    fastest = _fastest(prediction, loaded.devices)
    if fastest is None or prediction.alone[fastest].step_s >= prediction.step_s:
        return
    outside = [stage for stage in loaded.stages if stage.device != fastest]
    if outside:
        parts = " and ".join(f"{stage.parts} ({stage.device})" for stage in outside)
        text = f"spilled: {parts} not on {fastest}, because {_no_room(facts, prediction, fastest)}"
        yield Verdict("warn", text, "spilled", _less_memory(facts))


def _in_main_memory(facts: ModelFacts) -> Iterator[Verdict]:
    """Report what the driver of a card keeps in main memory."""
    for memory_id, num_bytes in facts.report.spilled_bytes.items() if facts.report else ():
        stages = facts.loaded.stages if facts.loaded else ()
        names = dict.fromkeys(stage.device for stage in stages if stage.memory_id == memory_id)
        if names:
            text = (
                f"spilled: the driver keeps {format_bytes(num_bytes)} of {' and '.join(names)} in main memory"
            )
            text += ", which is slower, because the memory of the card is full"
            yield Verdict("warn", text, "spilled", _less_memory(facts))


def _streamed(facts: ModelFacts) -> Iterator[Verdict]:
    for stage in facts.loaded.stages if facts.loaded else ():
        if not stage.streamed_bytes:
            continue
        size = format_bytes(stage.streamed_bytes)
        text = f"streamed: each step copies {size} of weights from main memory to {stage.device}"
        if facts.asked is not None and any(one.streamed for one in facts.asked.stages):
            yield Verdict("info", f"{text}, as the setting split says", "streamed")
        else:
            yield Verdict(
                "warn", f"{text}, because its memory has no room for them", "streamed", _less_memory(facts)
            )


def _missed_experts(facts: ModelFacts) -> Iterator[Verdict]:
    """Report experts that steps have read from the disk, or a card from main memory."""
    use = facts.report.expert_cache if facts.report else None
    if use is None or not use.misses:
        return
    read = use.misses / (use.hits + use.misses)
    stages = facts.loaded.stages if facts.loaded else ()
    cards = [stage.device for stage in stages if stage.main_memory_expert_bytes]
    source, owner = ("main memory", f"the memory of {cards[0]}") if cards else ("the disk", "memory")
    text = f"streamed: {read:.0%} of the experts that steps used were read from {source}, because"
    text += f" {owner} has room for {format_bytes(use.held_bytes)} of them"
    yield Verdict("warn", text, "streamed", _less_memory(facts))


def _throttled(facts: ModelFacts) -> Iterator[Verdict]:
    """Compare steps of one sequence with their prediction and the keys and values that they have read.

    If the times of stages are known, each device is compared alone.
    """
    prediction, steps = facts.prediction, facts.single_steps()
    rates = [facts.devices.kv_bytes_per_s.get(name, 0.0) for name in facts.device_names]
    if prediction is None or steps is None or steps.count < LEAST_STEPS or not all(rates):
        return
    when = f"in the last {facts.seconds:.0f} s" if facts.before else "since it was loaded"
    slow = [one for one in device_times(facts, prediction, steps) if _is_slow(one.took_s, one.expected_s)]
    for one in slow:
        text = f"throttled: {one.device} worked {1e3 * one.took_s:.1f} ms on a step of one sequence {when},"
        text += f" {1e3 * one.expected_s:.1f} ms were predicted"
        yield Verdict("warn", *_why_slow(facts, text, [one.device]))
    expected_s = prediction.step_s + steps.kv_bytes / min(rates)
    if slow or not _is_slow(steps.step_s, expected_s):
        return
    text = (
        f"throttled: a step of one sequence took {1e3 * steps.step_s:.1f} ms {when},"
        f" {1e3 * expected_s:.1f} ms were predicted for {' and '.join(facts.device_names)}"
    )
    if steps.stages_s:
        text += f", which worked {1e3 * sum(steps.stages_s):.1f} ms on it"
    yield Verdict("warn", *_why_slow(facts, text, facts.device_names))


def _is_slow(took_s: float, expected_s: float) -> bool:
    return took_s >= max(SLOWER * expected_s, expected_s + LEAST_LOSS_S)


def _why_slow(facts: ModelFacts, text: str, names: Sequence[str]) -> tuple[str, State, str]:
    """Return the sentence with the likely reason, and what to do; ``names`` are the devices that are slow."""
    others = facts.others
    on_host = any(name in facts.devices.uses_threads for name in names)
    if on_host and others is not None and others.used >= BUSY_PROCESSORS:
        reason = f"other programs use {others.used:.1f} of {others.processors} processors"
        fix = "end other programs, or give llmd fewer --threads than there are free processors"
    else:
        reason = "the clocks may be lowered (heat, a power limit), or other programs use the device"
        fix = f"look at its temperature, power limit and other programs; `llmd plan {facts.name} --verify`"
        fix += " measures the model alone"
    return f"{text}: {reason}", "throttled", fix


def _on_cpu(facts: ModelFacts) -> Iterator[Verdict]:
    """Report a model in main memory if there is a card that can be used."""
    loaded = facts.loaded
    if loaded is None or any(stage.memory_id != HOST_MEMORY for stage in loaded.stages):
        return
    used = " and ".join(loaded.devices)
    if facts.lost:
        text = f"on the CPU ({used}), because {' and '.join(facts.lost)} was lost or its memory was filled"
        fix = f"`llmd stop {facts.name} && llmd load {facts.name}` loads it again; `llmd logs` has the reason"
        yield Verdict("warn", text, "on the CPU", fix)
        return
    cards = _cards(facts.devices.infos)
    if not cards:
        return
    if _is_chosen(facts, cards):
        card = next(iter(cards))
        setting = "split" if facts.asked and facts.asked.stages else "device"
        if facts.asked and facts.asked.division:
            setting = "gpu_layers" if facts.asked.cpu_experts is None else "cpu_experts"
        text = f"on the CPU ({used}) although {card} is there, because the setting {setting} says so"
        yield Verdict("info", text, "on the CPU")
    elif reason := _why_not_on(facts, cards):
        yield Verdict("warn", f"on the CPU ({used}): {reason}", "on the CPU", _less_memory(facts))


def _memory(facts: ModelFacts) -> Iterator[Verdict]:
    """Compare the memory that the load took with what was planned."""
    for one in facts.loaded.memories if facts.loaded else ():
        name = " and ".join(one.devices)
        planned, taken = format_bytes(one.planned_bytes), format_bytes(one.taken_bytes)
        text = f"memory: the load took {taken} of {name}, {planned} were planned"
        if one.taken_bytes > MORE_MEMORY * one.planned_bytes + LEAST_MEMORY:
            fix = f"other programs may have taken it; see the memory of {name} with `llmd devices`"
            yield Verdict("warn", text, "memory", fix)
        elif one.taken_bytes < LESS_MEMORY * one.planned_bytes - LEAST_MEMORY:
            text += ": the driver may have put the rest into main memory, which is slower"
            yield Verdict("warn", text, "memory", _less_memory(facts))


def _slow_kernels(facts: ModelFacts) -> Iterator[Verdict]:
    """Report kernels that are slower than those whose rates were measured."""
    stages, uses = facts.loaded.stages if facts.loaded else (), facts.report.kernels if facts.report else ()
    said = {
        f"slow kernels: {stage.device} {path.what}": path.fix
        for stage, use in zip(stages, uses, strict=False)
        for path in use.slow
    }
    for text, fix in said.items():
        yield Verdict("warn", text, "slow kernels", fix)


PLACEMENT_RULES: Sequence[Callable[[ModelFacts], Iterator[Verdict]]] = (
    _on_cpu,
    _spilled,
    _in_main_memory,
    _streamed,
    _missed_experts,
    _throttled,
    _memory,
    _slow_kernels,
)


def _fastest(prediction: Prediction, names: Sequence[str]) -> str | None:
    """Return the device that would run the whole model fastest; None: none can."""
    able = [name for name in names if name in prediction.alone]
    return min(able, key=lambda name: prediction.alone[name].step_s, default=None)


def _cards(infos: Mapping[str, DeviceInfo]) -> dict[str, DeviceInfo]:
    return {name: info for name, info in infos.items() if info.memory_id != HOST_MEMORY}


def _is_divided_by_user(facts: ModelFacts) -> bool:
    return facts.asked is not None and (bool(facts.asked.stages) or bool(facts.asked.division))


def _is_chosen(facts: ModelFacts, cards: Mapping[str, DeviceInfo]) -> bool:
    """Whether the settings keep the model from all cards."""
    if facts.asked is None or facts.asked.device in {"auto", ""}:
        return _is_divided_by_user(facts)
    named = {name.strip() for name in facts.asked.device.split(",")}
    may_use = {name for name, info in cards.items() if named & {name, *info.aliases}}
    return _is_divided_by_user(facts) or not may_use


def _why_not_on(facts: ModelFacts, cards: Mapping[str, DeviceInfo]) -> str:
    """Return why a card that would be faster has no part of the model; empty: none would be."""
    prediction = facts.prediction
    if prediction is None:
        unmeasured = [name for name in cards if name not in facts.devices.read_bytes_per_s]
        return f"{unmeasured[0]} was not measured yet" if unmeasured else ""
    card = _fastest(prediction, list(cards))
    if card is None:
        return f"{next(iter(cards))} cannot run all of this model"
    if prediction.alone[card].step_s >= prediction.step_s:
        return ""
    return f"{card} would be faster, but {_no_room(facts, prediction, card)}"


def _no_room(facts: ModelFacts, prediction: Prediction, name: str) -> str:
    num_bytes, info = prediction.alone[name].num_bytes, facts.devices.infos.get(name)
    size = f"the whole model takes {format_bytes(num_bytes)} there"
    limit = facts.asked.options_of(name).memory_bytes if facts.asked else None
    if limit is not None:
        return f"{size}, and the setting memory_budget allows {format_bytes(limit)}"
    if info is None or num_bytes > info.memory_bytes:
        return f"{size}, and it has {format_bytes(info.memory_bytes) if info else 'less'}"
    return f"{size}, and not so much of its {format_bytes(info.memory_bytes)} was free"


def _less_memory(facts: ModelFacts) -> str:
    return (
        f"`llmd plan {facts.name}` shows what fits; fewer bits (--quant), --slots or --max-ctx need less memory,"
        " and `llmd ps` shows other models that could be stopped"
    )
