"""Compares llmd and llama.cpp on the same weights: ``python -m bench.cpu [SHAPE] [--profile NAME]``.

``make bench-cpu`` builds what it needs first. METHODOLOGY.md says what is measured and how.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.checkpoint import MODELS, checkpoint_directory, write_checkpoint
from bench.cpu_pair import Pair
from bench.cpu_profiles import Profile, add_options, chosen
from bench.cpu_report import Section, page
from bench.machine import describe
from bench.peer import peer_version
from bench.publication import publish
from bench.quiet import DisturbedError
from bench.shapes import SHAPES, Shape


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.cpu")
    parser.add_argument("shape", nargs="?", default="llama-1b", choices=SHAPES)
    parser.add_argument("--layers", type=int, help="use only this many layers, if all would take hours")
    add_options(parser)
    arguments = parser.parse_args()
    try:
        profile, warnings = chosen(arguments)
        shape = SHAPES[arguments.shape]
        if arguments.layers is not None:
            shape = shape.with_layers(arguments.layers)
    except ValueError as error:
        parser.error(str(error))
    for warning in warnings:
        print(f"warning: not as pinned: {warning}", file=sys.stderr)
    machine = f"{datetime.now(UTC):%Y-%m-%d}, {describe()}"
    found: list[Section] = []
    disturbed: DisturbedError | None = None
    try:
        found.extend(sections(shape, profile))  # keeps the sections before an error
    except DisturbedError as error:
        disturbed = error
    kv = "" if profile.kv == "f16" else f"-{profile.kv}-kv"
    text = page(shape, profile, warnings, machine, peer_version(), found)
    publish(f"cpu-{shape.name}{kv}", text, disturbed)


def sections(shape: Shape, profile: Profile) -> Iterator[Section]:
    """Yield each pair of formats at its best; the first also with each instruction set, and next to other
    work.
    """
    directory = write_checkpoint(shape, checkpoint_directory(shape))
    for number, (quant, kind) in enumerate(profile.pairs):
        with tempfile.TemporaryDirectory(prefix="cache-", dir=MODELS) as cache:
            pair = Pair(shape, profile, quant, kind, directory, Path(cache))
            best, peaked = pair.best()
            alone = [pair.alone(isa) for isa in (profile.isas if number == 0 else ())]
            beside = pair.beside_work() if number == 0 else None
            yield Section(quant, kind, [best, *alone], pair.quality(peaked), beside)


if __name__ == "__main__":
    main()
