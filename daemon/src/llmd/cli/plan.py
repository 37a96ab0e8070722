"""``llmd plan MODEL``: which devices a model should run on, and what each choice would take."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs

from llmd.api.byte_size import format_bytes
from llmd.api.errors import DeviceError, PluginError
from llmd.api.messages import Load
from llmd.cli.completion.names import model_names
from llmd.cli.composition import build_benchmarks, build_cache, build_host, build_store, cache_folder
from llmd.cli.devices import profile_of
from llmd.cli.examples import examples
from llmd.cli.model_flag import ModelCommand
from llmd.cli.output import aligned, show_json
from llmd.cli.settings import CONFIG, JSON
from llmd.cli.this_machine import local_settings

if TYPE_CHECKING:
    from llmd.config import Settings
    from llmd.engine.placement.alternatives import Alternative, Comparison, Measured
    from llmd.engine.placement.candidates import Candidate, MachineDevices
    from llmd.engine.placement.typical_request import Request
    from llmd.host.benchmarks import Benchmarks


@click.command(
    cls=ModelCommand, epilog=examples("llmd plan guide", "llmd plan guide --verify", "llmd plan guide --json")
)
@click.argument("model", shell_complete=model_names)
@click.option("--verify", is_flag=True, help="Load the model as planned, and measure what was predicted.")
@JSON
@CONFIG
def command(*, model: str, verify: bool, as_json: bool, config_file: Path | None) -> None:
    """Show which devices would run a model fastest, and what each choice would take.

    MODEL is a name that `llmd list` shows, a directory, or a GGUF file. Times are predicted from the measured
    rates of the devices, for a prompt of 512 tokens and an answer of 128 tokens, with nothing else running.
    Nothing is loaded without --verify. `llmd serve` loads models on the best choice, unless settings name
    devices.
    """
    settings = local_settings(config_file, "models")
    stored = build_store(settings.directories).find(model, allow_path=True)
    name = stored.base or stored.name
    found = comparison(stored.directory, name, settings)
    if verify and found.best is not None:
        load = planned_load(stored.directory, name, settings, found.alternatives[0])
        found = structs.replace(found, measured=measured(load, found.request))
    show_json({"plan": found}) if as_json else click.echo("\n".join(lines_of(found)))


def comparison(directory: Path, name: str, settings: Settings) -> Comparison:
    """Compare the choices of devices for a model. Devices that were not measured yet are measured.

    Raises:
        LlmdError: the model cannot be loaded, or there is no device.
    """
    from llmd.engine.placement.alternatives import compare
    from llmd.engine.placement.automatic import with_own_names
    from llmd.engine.placement.candidates import MachineDevices, free_room
    from llmd.engine.placement.default_quant import with_default_quant
    from llmd.models.open_model import open_model
    from llmd.server.models.load_message import load_message_of

    load = load_message_of(name, directory, settings)
    cache = build_cache()
    host, benchmarks = build_host(cache), build_benchmarks(cache)
    opened = open_model(directory, host.architectures(), load.context_len, adapters=load.adapters)
    devices = MachineDevices(host, benchmarks, free_room(settings.of_model(name).server.models.max_memory))
    try:
        load, opened = with_default_quant(with_own_names(load, devices), opened)
        return compare(load, opened, candidates(devices, benchmarks))
    finally:
        opened.checkpoint.close()


def planned_load(directory: Path, name: str, settings: Settings, planned: Alternative) -> Load:
    """Return the load of a model on the devices of a plan."""
    from llmd.server.models.load_message import load_message_of, parse_split

    stages = parse_split(split_of(planned))
    return structs.replace(load_message_of(name, directory, settings).undivided(), stages=stages)


def measured(load: Load, request: Request) -> Measured:
    """Load a model in this process, and measure requests.

    Raises:
        LlmdError: it cannot be loaded.
    """
    from llmd.benchmark.timed_requests import time_requests
    from llmd.engine.composition import loader_for

    with closing(loader_for(cache_folder())(load, lambda _progress: None)) as model:
        return time_requests(model, request)


def candidates(devices: MachineDevices, benchmarks: Benchmarks) -> list[Candidate]:
    """Return the usable devices, best first, with their rates and free memory.

    Raises:
        DeviceError: none could be measured.
    """
    found: list[Candidate] = []
    for device in devices.usable():
        try:
            profile_of(device, benchmarks)
        except PluginError as error:
            click.echo(f"{device.info.name} is left out: {error.message}", err=True)
            continue
        found += devices.measured([device])
    if not found:
        raise DeviceError("no device can be used", hint="`llmd devices` shows why")
    return found


def lines_of(found: Comparison) -> list[str]:
    """Return what to print: a table of the choices, and how to load the best one."""
    request = found.request
    answer = f" and an answer of {request.answer_len} tokens" if request.answer_len else ""
    head = f"for a prompt of {request.prompt_len} tokens{answer}, with nothing else running:"
    rows = [["DEVICES", "FIRST TOKEN", "TOKENS/S", "REQUEST", "RESULT"]]
    rows += [_row(one, found) for one in found.alternatives]
    rows += _measured_rows(found)
    return [head, "", aligned(rows), "", *_advice(found)]


def _measured_rows(found: Comparison) -> list[list[str]]:
    """Return what the best choice really took, next to what was predicted."""
    real, best = found.measured, found.alternatives[0]
    if real is None or best.request_s is None:
        return []
    result = (
        f"{real.request_s / best.request_s:.2f} times the prediction; rounds differ by {real.slowest - 1:.0%}"
    )
    return [
        ["", *_times(real.prompt_s, real.tokens_per_s, real.request_s), f"measured on {best.name}: {result}"]
    ]


def _row(one: Alternative, found: Comparison) -> list[str]:
    if one.request_s is None or one.prompt_s is None:
        return [one.name, "", "", "", one.problem or one.note]
    result = "best" if one is found.alternatives[0] else _slower(one.request_s, found)
    noted = "; ".join(filter(None, [result, one.note]))
    return [one.name, *_times(one.prompt_s, one.tokens_per_s, one.request_s), noted]


def _times(prompt_s: float, tokens_per_s: float | None, request_s: float) -> list[str]:
    rate = "" if tokens_per_s is None else f"{tokens_per_s:.1f}"
    return [_seconds(prompt_s), rate, _seconds(request_s)]


def _slower(seconds: float, found: Comparison) -> str:
    least = found.alternatives[0].request_s or seconds
    return f"{seconds / least:.1f} times as long" if seconds > least else ""


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"


def _advice(found: Comparison) -> list[str]:
    """Return how the best choice divides the model, or what to do if nothing fits."""
    best = found.alternatives[0]
    if found.best is None:
        return ["The model does not fit this machine: quantise it with --quant, or use a smaller one."]
    kinds = list(dict.fromkeys(kind for stage in best.stages for kind in stage.bytes_by_kind))
    in_main = ["IN MAIN MEMORY" if best.note else "STREAMED"] * any(stage.host_bytes for stage in best.stages)
    rows = [["DEVICE", "PARTS", "MEMORY", *(kind.upper() for kind in kinds), *in_main]]
    for stage in best.stages:
        sizes = [
            format_bytes(stage.bytes_by_kind[kind]) if kind in stage.bytes_by_kind else "" for kind in kinds
        ]
        streamed = [format_bytes(stage.host_bytes)] if stage.host_bytes else []
        rows.append([stage.device, stage.parts, format_bytes(stage.num_bytes), *sizes, *streamed])
    settings = f"--device {best.name}" if len(best.stages) == 1 else f"--split {split_of(best)}"
    return [aligned(rows), "", *_experts(best), *_bound(found), f"the same as settings: {settings}"]


def _experts(best: Alternative) -> list[str]:
    """Return how much of the experts of a mixture a token reads."""
    read = sum(stage.expert_bytes_per_token for stage in best.stages)
    return [f"a token reads {format_bytes(read)} of the experts"] if read else []


def split_of(one: Alternative) -> str:
    """Return a choice as ``--split`` writes it."""
    return ",".join(f"{_range(stage.part_names)}={stage.device}" for stage in one.stages)


def _bound(found: Comparison) -> list[str]:
    """Return how much faster another choice could be, if that is worth a line."""
    request_s = found.alternatives[0].request_s
    if found.least_s is None or request_s is None or request_s <= found.least_s * 1.001:
        return []
    return [
        f"with one step after the other, no choice is faster than {_seconds(found.least_s)} for this request"
    ]


def _range(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]}-{names[-1]}"
