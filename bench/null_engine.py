"""An engine process on the null device: ``python -m bench.null_engine --step-ms MS --slots N --fd N``."""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from llmd.api.messages import Load, Loading
from llmd.engine.channel import Channel
from llmd.engine.composition import make_host
from llmd.engine.loading import LoadedModel, load_model
from llmd.engine.process import serve
from llmd.testing.null_device import NullDevice

SPIN_S = 0.0004


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
        return serve(Channel(sock), load)


def null_device(step_s: float) -> NullDevice:
    """A null device that keeps real time."""
    return NullDevice(time.perf_counter, step_s=step_s, pause=pause, memory_bytes=4 << 30)


def pause(seconds: float) -> None:
    """Wait exactly: a sleep ends late by more than the costs that are measured."""
    end = time.perf_counter() + seconds
    if seconds > SPIN_S:
        time.sleep(seconds - SPIN_S)
    while time.perf_counter() < end:
        pass


if __name__ == "__main__":
    sys.exit(main())
