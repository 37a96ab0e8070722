"""``llmd bench engine``: measures the overhead of the engine loop."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from llmd.cli.completion.names import model_names
from llmd.cli.composition import build_choices, build_store, cache_folder
from llmd.cli.examples import examples
from llmd.cli.output import Column, View, listing_options, show
from llmd.cli.settings import CONFIG, DEVICE, QUANT, SPLIT, read_settings

if TYPE_CHECKING:
    from llmd.api.messages import Load
    from llmd.api.samplers import SamplingParams
    from llmd.benchmark.engine_loop import LoopCost
    from llmd.engine.steps.step_trace import TracedStep


@click.command(
    context_settings={"show_default": True},
    epilog=examples(
        "llmd bench engine",
        "llmd bench engine --streams 64 --temperature 0.8 --top-p 0.9",
        "llmd bench engine --model guide --streams 8 --trace steps.json",
    ),
)
@click.option(
    "--streams",
    type=click.IntRange(1),
    multiple=True,
    default=(16, 128),
    help="Concurrent streams; repeatable.",
)
@click.option(
    "--step-ms",
    type=click.FloatRange(min=0.001),
    default=10.0,
    help="Time that the device takes per step, without --model.",
)
@click.option("--steps", type=click.IntRange(1), default=200, help="Number of steps to measure.")
@click.option("--temperature", type=click.FloatRange(min=0), default=0.0, help="0 is greedy.")
@click.option("--top-p", type=click.FloatRange(0, 1, min_open=True), default=1.0, help="Nucleus sampling.")
@click.option(
    "-m",
    "--model",
    metavar="MODEL",
    shell_complete=model_names,
    help="Load this model: a name that `llmd list` shows, a directory, or a GGUF file.",
)
@DEVICE
@SPLIT
@QUANT
@click.option(
    "--trace",
    "trace_file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write what happened in each step, for a trace viewer such as Perfetto.",
)
@CONFIG
@listing_options
def command(
    *,
    streams: tuple[int, ...],
    step_ms: float,
    steps: int,
    temperature: float,
    top_p: float,
    model: str | None,
    trace_file: Path | None,
    config_file: Path | None,
    device: str | None,
    split: str | None,
    quant: str | None,
    **view: Any,
) -> None:
    """Measure how long a device would wait for the engine loop.

    Without a model, a null device takes a fixed time for each step and returns meaningless tokens. With
    --model, the model decodes random tokens on its devices. IDLE is the time that the device waits between
    two steps, as a share of a step; LOOP is the CPU time of the loop's thread per step, on which some devices
    compute, too.
    """
    from llmd.api.samplers import SamplingParams
    from llmd.benchmark.trace_events import write_trace

    sampling = SamplingParams(seed=0, temperature=temperature, top_p=top_p)
    if model is None:
        if device or split or quant:
            raise click.UsageError("--device, --split and --quant need --model")
        stages = ["null device"]
        rows, traced = null_loads(streams, sampling, step_ms / 1e3, steps, is_traced=trace_file is not None)
    else:
        load = load_of(model, config_file, max(streams), device=device, split=split, quant=quant)
        stages, rows, traced = model_loads(load, streams, sampling, steps)
    if trace_file is not None:
        write_trace(trace_file, traced, stages)
    show(View(**view), "loads", rows, _columns())


def null_loads(
    streams: Sequence[int], sampling: SamplingParams, step_s: float, steps: int, *, is_traced: bool
) -> tuple[list[LoopCost], list[TracedStep]]:
    """Measure a null device; return the cost of each load, and the traced steps of all."""
    from llmd.benchmark.engine_loop import measure_loop
    from llmd.engine.steps.step_trace import Tracer

    rows: list[LoopCost] = []
    traced: list[TracedStep] = []
    tracer = Tracer() if is_traced else None
    for count in streams:
        rows.append(measure_loop(count, sampling, step_s, steps, tracer))
        if tracer is not None:
            traced += tracer.steps
    return rows, traced


def load_of(model: str, config_file: Path | None, slots: int, **flags: str | None) -> Load:
    """Return the message that loads a model for ``slots`` streams.

    Raises:
        LlmdError: there is no such model, or a setting is wrong.
    """
    from llmd.server.models.load_message import load_message_of

    settings = read_settings(config_file, **flags)
    stored = build_store(settings.directories).find(model, allow_path=True)
    load = load_message_of(stored.base or stored.name, stored.directory, settings)
    return msgspec.structs.replace(load, slots=slots, kv_spool=0)


def model_loads(
    load: Load, streams: Sequence[int], sampling: SamplingParams, steps: int
) -> tuple[list[str], list[LoopCost], list[TracedStep]]:
    """Measure a model; return the names of its stages, the cost of each load, and the traced steps of all.

    Raises:
        LlmdError: the model cannot be loaded or cannot run that many streams or steps.
    """
    from llmd.benchmark.engine_loop import measure_model
    from llmd.engine.composition import loader_for
    from llmd.engine.steps.step_trace import Tracer

    tracer = Tracer()
    rows: list[LoopCost] = []
    traced: list[TracedStep] = []
    loader = loader_for(cache_folder(), build_choices().path, tracer)
    with closing(loader(load, lambda _loading: None)) as loaded:
        stages = [f"{stage.device}: {stage.parts}" for stage in loaded.loaded.stages]
        for count in streams:
            vocab = loaded.loaded.vocab_size
            rows.append(measure_model(loaded.core, vocab, count, sampling, steps, tracer))
            traced += tracer.steps
    return stages, rows, traced


def _columns() -> tuple[Column[LoopCost], ...]:
    return (
        Column("STREAMS", lambda row: str(row.streams), lambda row: row.streams),
        Column("STEP", lambda row: f"{row.step_s * 1e3:.4g} ms", lambda row: row.step_s),
        Column("IDLE", _idle, lambda row: row.idle_share or 0.0),
        Column("LOOP", lambda row: f"{row.loop_s * 1e3:.2f} ms", lambda row: row.loop_s),
        Column("TOKENS/S", lambda row: f"{row.tokens_per_s:.0f}", lambda row: row.tokens_per_s),
    )


def _idle(row: LoopCost) -> str:
    return "" if row.idle_share is None else f"{row.idle_share:.1%}"
