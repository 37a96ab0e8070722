"""Runs a daemon with its models on the null device: ``python -m bench.null_daemon MODEL SLOTS STEP_MS``."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from llmd.cli.composition import build_host, build_store
from llmd.config import load_settings
from llmd.server.daemon import Daemon, run_until_signal
from llmd.server.engines.engine_starter import EngineStarter


class NullDaemon(NamedTuple):
    """The socket and the front process of a daemon."""

    socket: Path
    pid: int


@contextmanager
def null_daemon(model: str, *, slots: int, step_ms: float) -> Iterator[NullDaemon]:
    """Run a daemon in a new process, with a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="llmd-null-") as name:
        folder = Path(name)
        homes = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "STATE", "CACHE")}
        environment = os.environ | homes | {"LLMD_ADDR": f"unix:{folder}/llmd.sock"}
        command = (sys.executable, "-m", "bench.null_daemon", model, str(slots), str(step_ms))
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            if not process.stdout.readline():
                sys.exit("the daemon did not start")
            yield NullDaemon(folder / "llmd.sock", process.pid)
            process.terminate()


def main(model: str, slots: str, step_ms: str) -> None:
    """Serve in this process until SIGTERM."""
    settings = load_settings({"slots": int(slots)})
    cache = str(settings.directories.cache)
    engine = (sys.executable, "-m", "bench.null_engine", "--cache", cache, "--step-ms", step_ms)
    store = build_store(settings.directories)
    daemon = Daemon(settings, host=build_host(), store=store, models=[model], engines=EngineStarter(engine))
    asyncio.run(run_until_signal(daemon, lambda serving: print(serving, flush=True)))


if __name__ == "__main__":
    main(*sys.argv[1:])
