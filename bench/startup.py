"""Measures how fast llmd starts and how much memory the front uses: ``python -m bench.startup``.

Measures in temporary folders: ``llmd --version``, ``llmd --help`` and ``llmd ps``; a daemon without a model
until it is ready (`/ready` answers 200) and its resident memory; the same with a model. Each is the median of
several runs in fresh processes; the first run of each warms the file cache and is not counted.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

LLMD = (sys.executable, "-m", "llmd.cli.main")
RUNS = 5


def main() -> None:
    """Print one JSON object. With an argument, also serve that model."""
    with tempfile.TemporaryDirectory(prefix="llmd-startup-") as folder:
        environment = environment_below(Path(folder))
        results = {
            "version_s": median(lambda: command_s(environment, "--version")),
            "help_s": median(lambda: command_s(environment, "--help")),
            "serve": serving(environment),
        }
        with daemon(environment):
            results["ps_s"] = median(lambda: command_s(environment, "ps"))
        if len(sys.argv) > 1:
            results["serve_model"] = serving(environment, sys.argv[1])
    print(json.dumps(results, indent=2))


def environment_below(folder: Path) -> dict[str, str]:
    """Return variables that put caches and sockets into one folder."""
    homes = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "STATE", "CACHE")}
    return os.environ | homes | {"XDG_RUNTIME_DIR": str(folder), "LLMD_ADDR": f"unix:{folder}/llmd.sock"}


def median(measure: Callable[[], float]) -> float:
    """Return the median of several measurements after a warm-up."""
    measure()
    return round(statistics.median(measure() for _ in range(RUNS)), 3)


def command_s(environment: Mapping[str, str], *arguments: str) -> float:
    """Return the run time of a command."""
    began = time.perf_counter()
    subprocess.run((*LLMD, *arguments), env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def serving(environment: Mapping[str, str], *models: str) -> dict[str, float]:
    """Measure the time until a daemon is ready, and the resident memory of its front then and 10 s later."""

    def ready_s() -> float:
        with daemon(environment, *models) as (_, elapsed_s):
            return elapsed_s

    ready = median(ready_s)
    with daemon(environment, *models) as (pid, _):
        first = resident_bytes(pid)
        time.sleep(10)  # devices are benchmarked after the start
        later = resident_bytes(pid)
    return {
        "ready_s": ready,
        "front_rss_mb": round(first / 1e6, 1),
        "front_rss_mb_after_10_s": round(later / 1e6, 1),
    }


@contextmanager
def daemon(environment: Mapping[str, str], *models: str) -> Iterator[tuple[int, float]]:
    """Run a daemon; yield its process and the time until it was ready."""
    began = time.perf_counter()
    with subprocess.Popen((*LLMD, "serve", *models), env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        elapsed_s = time.perf_counter() - began
        if not line:
            sys.exit("the daemon did not start")
        yield process.pid, elapsed_s
        process.terminate()


def resident_bytes(pid: int) -> int:
    """Return the resident memory of one process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


if __name__ == "__main__":
    main()
