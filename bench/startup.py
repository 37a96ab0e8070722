"""How fast llmd starts, and what the front takes: ``python -m bench.startup``.

Measures on this machine, in folders of its own: ``llmd --version``, ``llmd --help`` and ``llmd ps``; a daemon without
a model until it is ready (`/ready` answers 200 from then on) and its resident memory; the same with a model. Each is
the median of several runs in fresh processes; the first run of each warms the file cache and is not counted.
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
    """Print one JSON object; with an argument, also serve that model."""
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
    """Variables that keep caches and sockets in one folder."""
    homes = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "STATE", "CACHE")}
    return os.environ | homes | {"XDG_RUNTIME_DIR": str(folder), "LLMD_ADDR": f"unix:{folder}/llmd.sock"}


def median(measure: Callable[[], float]) -> float:
    """The median of several measurements after one that is not counted."""
    measure()
    return round(statistics.median(measure() for _ in range(RUNS)), 3)


def command_s(environment: Mapping[str, str], *arguments: str) -> float:
    """How long a command takes from start to end."""
    began = time.perf_counter()
    subprocess.run((*LLMD, *arguments), env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def serving(environment: Mapping[str, str], *models: str) -> dict[str, float]:
    """Seconds until a daemon is ready, and the resident memory of its front then and after ten seconds."""

    def ready_s() -> float:
        with daemon(environment, *models) as (_, elapsed_s):
            return elapsed_s

    ready = median(ready_s)
    with daemon(environment, *models) as (pid, _):
        first = resident_bytes(pid)
        time.sleep(10)  # devices are measured after start
        later = resident_bytes(pid)
    return {
        "ready_s": ready,
        "front_rss_mb": round(first / 1e6, 1),
        "front_rss_mb_after_10_s": round(later / 1e6, 1),
    }


@contextmanager
def daemon(environment: Mapping[str, str], *models: str) -> Iterator[tuple[int, float]]:
    """A daemon, and how long it took to say that it is ready."""
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
    """Resident memory of one process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


if __name__ == "__main__":
    main()
