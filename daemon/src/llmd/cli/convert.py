"""``llmd convert``: converts a model to a GGUF file or a directory."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from llmd.api.byte_size import format_bytes
from llmd.cli.completion.names import model_names
from llmd.cli.composition import build_host, build_store
from llmd.cli.examples import examples
from llmd.cli.output import show_json
from llmd.cli.pull_progress import shown
from llmd.cli.settings import JSON, daemon_settings

if TYPE_CHECKING:
    from llmd.conversion.convert import Progress, Report
    from llmd.registry.store import Store
    from llmd.registry.stored_model import StoredModel


@click.command(
    epilog=examples(
        "llmd convert ~/models/llama llama.gguf",
        "llmd convert ~/models/llama llama-q4_0.gguf --quant q4_0",
        "llmd convert model-Q8_0.gguf ~/models/model --quant bf16",
    )
)
@click.argument("source", shell_complete=model_names)
@click.argument("target", type=click.Path(path_type=Path))
@click.option(
    "--quant",
    metavar="FORMAT",
    help="Weight format: f32, f16, bf16; for a GGUF file also q8_0, q5_1, q5_0, q4_1, q4_0. By default formats are kept.",
)
@click.option("--force", is_flag=True, help="Replace the model at TARGET.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@JSON
def command(*, source: str, target: Path, quant: str | None, force: bool, quiet: bool, as_json: bool) -> None:
    """Convert SOURCE (a name that `llmd list` shows, a directory or a GGUF file) to TARGET.

    Of a derived model, the weights and the template of its base are converted.

    If TARGET ends in .gguf, the result is one GGUF file for llama.cpp and others. Otherwise it is a directory
    for transformers, with safetensors weights, the configuration and the tokenizer. A conversion that would
    change what the model computes is refused. Weights keep their format if TARGET supports it; a directory
    has no quantised formats.
    """
    from llmd.conversion.convert import convert

    store = build_store(daemon_settings(None).directories)
    model = store.find(source, allow_path=True)
    reports: list[Report] = []
    with (
        ended_cleanly(),
        contextlib.closing(
            convert(model.directory, target, build_host().architectures(), quant=quant, force=force)
        ) as running,
    ):
        shown(steps(running, target.name, reports), sys.stderr, quiet=quiet or as_json)
    (report,) = reports
    if model.base:
        report = msgspec.structs.replace(report, notices=(derived_notice(model), *report.notices))
    if as_json:
        show_json({"converted": report})
    else:
        click.echo("\n".join(sentences(report, name_of(Path(report.target), store))))


@contextlib.contextmanager
def ended_cleanly() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C inside the block, so that an unfinished target is removed."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def steps(
    running: Generator[Progress, None, Report], name: str, reports: list[Report]
) -> Generator[dict[str, Any], None, None]:
    """Yield the steps of a conversion in the form of pull steps; append the report to ``reports``."""
    while True:
        try:
            progress = next(running)
        except StopIteration as done:
            reports.append(done.value)
            return
        yield {
            "status": "converting",
            "file": name,
            "digest": name,
            "total": progress.total,
            "completed": progress.completed,
        }


def derived_notice(model: StoredModel) -> str:
    """Say that what `llmd create` changed is not in the converted model."""
    return f"{model.name} is {model.base} with a prompt and settings of its own; TARGET has those of {model.base}"


def name_of(target: Path, store: Store) -> str:
    """Return what commands call a written model: its name in the store, or its path."""
    stored = store.directories().items()
    return next((name for name, place in stored if place.resolve() == target.resolve()), str(target))


def sentences(report: Report, name: str) -> list[str]:
    """Say what was written and how to run it."""
    counts = ", ".join(f"{count} as {fmt}" for fmt, count in report.formats.items())
    return [
        *(f"note: {notice}" for notice in report.notices),
        f"wrote {report.target}: {format_bytes(report.size_bytes)}, {report.num_tensors} tensors, {counts}",
        f"run it with `llmd run {name} PROMPT`",
    ]
