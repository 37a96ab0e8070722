"""Runs an engine on the null device: ``python -m bench.null_engine --step-ms MS --cache FOLDER --fd N``."""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from llmd.api.messages import Load, Loading
from llmd.benchmark.engine_loop import null_device
from llmd.engine.composition import make_host
from llmd.engine.loading import LoadedModel, load_model
from llmd.engine.process import serve


def main() -> int:
    """Run the engine on an inherited socket."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--step-ms", type=float, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    arguments = parser.parse_args()
    architectures = make_host(arguments.cache).architectures()
    device = null_device(arguments.step_ms / 1e3)

    def load(message: Load, report: Callable[[Loading], None]) -> LoadedModel:
        return load_model(message, architectures, lambda _name: device, report)

    with socket.socket(fileno=arguments.fd) as sock:
        return serve(sock, load)


if __name__ == "__main__":
    sys.exit(main())
