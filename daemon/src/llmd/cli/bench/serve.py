"""``llmd bench serve``: benchmarks a server under load."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from llmd.api.errors import LlmdError
from llmd.cli.bench.options import SeveralValues, load_options
from llmd.cli.bench.own_daemon import own_daemon
from llmd.cli.bench.progress import Progress
from llmd.cli.composition import build_store
from llmd.cli.connection import named
from llmd.cli.examples import examples
from llmd.cli.output import show_json
from llmd.cli.settings import CONFIG, JSON, TIMEOUT, read_settings

EXIT_INTERRUPTED = 130


@click.command(
    cls=SeveralValues,
    context_settings={"show_default": True},
    epilog=examples(
        "llmd bench serve --model guide --input-len 128 --output-len 64 --num-prompts 32",
        "llmd bench serve --model ~/models/llama --max-concurrency 16 -- --quant q8 --slots 16",
        "llmd bench serve --base-url http://127.0.0.1:8642 --request-rate 4 --goodput ttft:500 tpot:50",
    ),
)
@load_options
@JSON
@TIMEOUT
@CONFIG
@click.argument("serve_options", nargs=-1, type=click.UNPROCESSED, metavar="[-- SERVE_OPTION…]")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Benchmark a server under load and report the latencies and throughput that its clients see.

    Options, metric definitions and result keys match `vllm bench serve`. Without --base-url, a temporary
    daemon is started with --model and the `llmd serve` options after `--`, and stopped at the end. Ctrl-C
    ends the load and shows the results so far.
    """
    from llmd.benchmark.measurement import measure
    from llmd.benchmark.report import result, table, without_details
    from llmd.benchmark.target import Target
    from llmd.cli.bench.plan import read_chosen, read_plan

    settings = read_settings(options["config_file"], timeout_s=options["timeout_s"])
    plan, chosen = read_plan(options, settings.config.client), read_chosen(options)
    progress = Progress(plan.num_prompts)
    with stopped_by_term(), server(options) as base_url:
        store = build_store(settings.directories)
        head, run = asyncio.run(measure(plan, Target.parse(base_url), store, progress.ended))
    progress.close()
    found = result(head, options["metadata"], plan.traffic, run, chosen)
    shown = found if options["save_detailed"] else without_details(found)
    if options["as_json"]:
        show_json(shown)
    else:
        click.echo(table(found))
    if options["save_result"] or options["append_result"]:
        click.echo(f"written to {save(shown, options)}", err=True)
    if not run.is_whole:
        ctx.exit(EXIT_INTERRUPTED)
    if not found["completed"]:
        raise LlmdError("no request was answered", hint="see the errors above")


@contextmanager
def server(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the base URL of the server to measure; start a temporary one if none was named.

    Raises:
        click.UsageError: no model is named, or there are options for starting a server that already runs.
    """
    if options["base_url"]:
        if options["serve_options"]:
            words = " ".join(options["serve_options"])
            raise click.UsageError(f"{words!r} applies only to a temporary daemon: leave out --base-url")
        yield options["base_url"]
        return
    if not options["model"]:
        raise click.UsageError(
            "name a server with --base-url, or a model for a temporary daemon with --model"
        )
    config = ["--config", str(options["config_file"])] if options["config_file"] else []
    with own_daemon([*options["serve_options"], *config, named(options["model"])]) as base_url:
        yield base_url


@contextmanager
def stopped_by_term() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that a temporary daemon is stopped."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def save(found: Mapping[str, Any], options: Mapping[str, Any]) -> Path:
    """Write a result to its file; return the path."""
    import msgspec

    from llmd.benchmark.report import file_name

    folder = options["result_dir"] or Path()
    folder.mkdir(parents=True, exist_ok=True)
    path: Path = folder / (options["result_filename"] or file_name(found))
    with path.open("ab" if options["append_result"] else "wb") as file:
        file.write(msgspec.json.encode(found) + b"\n")
    return path
