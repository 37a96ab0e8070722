"""``llmd bench engine``: measures the overhead of the engine loop."""

from __future__ import annotations

from typing import Any

import click

from llmd.cli.examples import examples
from llmd.cli.output import Column, View, listing_options, show


@click.command(
    context_settings={"show_default": True},
    epilog=examples("llmd bench engine", "llmd bench engine --streams 64 --temperature 0.8 --top-p 0.9"),
)
@click.option(
    "--streams",
    type=click.IntRange(1),
    multiple=True,
    default=(16, 128),
    help="Concurrent streams; repeatable.",
)
@click.option(
    "--step-ms", type=click.FloatRange(min=0.001), default=10.0, help="Time that the device takes per step."
)
@click.option("--steps", type=click.IntRange(1), default=200, help="Number of steps to measure.")
@click.option("--temperature", type=click.FloatRange(min=0), default=0.0, help="0 is greedy.")
@click.option("--top-p", type=click.FloatRange(0, 1, min_open=True), default=1.0, help="Nucleus sampling.")
@listing_options
def command(
    *,
    streams: tuple[int, ...],
    step_ms: float,
    steps: int,
    temperature: float,
    top_p: float,
    **view: Any,
) -> None:
    """Measure how long a device would wait for the engine loop.

    This needs no model: a null device takes a fixed time for each step and returns meaningless tokens. IDLE
    is the time that the device waits between two steps, as a share of a step; LOOP is the CPU time of the
    loop per step.
    """
    from llmd.api.samplers import SamplingParams
    from llmd.benchmark.engine_loop import LoopCost, measure_loop

    sampling = SamplingParams(seed=0, temperature=temperature, top_p=top_p)
    rows = [measure_loop(count, sampling, step_ms / 1e3, steps) for count in streams]
    columns = (
        Column[LoopCost]("STREAMS", lambda row: str(row.streams), lambda row: row.streams),
        Column[LoopCost]("STEP", lambda row: f"{row.step_s * 1e3:g} ms", lambda row: row.step_s),
        Column[LoopCost]("IDLE", lambda row: f"{row.idle_share:.1%}", lambda row: row.idle_share),
        Column[LoopCost]("LOOP", lambda row: f"{row.loop_s * 1e3:.2f} ms", lambda row: row.loop_s),
        Column[LoopCost]("TOKENS/S", lambda row: f"{row.tokens_per_s:.0f}", lambda row: row.tokens_per_s),
    )
    show(View(**view), "loads", rows, columns)
