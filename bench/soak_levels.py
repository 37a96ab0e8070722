"""Samples the resources of a daemon during a soak, from /proc and its metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from bench.servers import family
from tests.chaos.fault_clients import Target


class Use(Struct, frozen=True):
    """The resources of some processes."""

    processes: int = 0
    resident: int = 0
    proportional: int = 0
    """Resident bytes, with shared pages divided among their processes."""
    anonymous: int = 0
    """Resident bytes that no file backs."""
    descriptors: int = 0
    threads: int = 0


class Sample(Struct, frozen=True):
    """The resources at one time (seconds since the start), and the daemon's metrics by name."""

    at_s: float
    front: Use
    engine: Use
    helpers: Use
    metrics: Mapping[str, float]


def sample(target: Target, front_pid: int, at_s: float) -> Sample:
    """Take a sample."""
    (row,) = json.loads(target.get("/llmd/ps"))["models"]
    engine_pid = row["engine_pid"]
    others = [pid for pid in family(front_pid) if pid not in {front_pid, engine_pid}]
    return Sample(at_s, use([front_pid]), use([engine_pid]), use(others), metrics_of(target))


def metrics_of(target: Target) -> dict[str, float]:
    """Return llmd's metrics with one value per model, and the request counts by outcome."""
    found = {}
    for metric in text_string_to_metric_families(target.get("/metrics").decode()):
        for one in metric.samples:
            if one.name.startswith("llmd_") and set(one.labels) <= {"model", "outcome"}:
                found[one.name.removeprefix("llmd_") + one.labels.get("outcome", "")] = one.value
    return found


def use(pids: list[int]) -> Use:
    """Return the sum of the processes' resources; a process that has just ended counts as nothing."""
    uses = [found for pid in pids if (found := _of(Path(f"/proc/{pid}"))) is not None]
    return Use(**{name: sum(getattr(one, name) for one in uses) for name in Use.__struct_fields__})


def _of(process: Path) -> Use | None:
    try:
        memory = _fields(process / "smaps_rollup")
        descriptors = sum(1 for _ in (process / "fd").iterdir())
        threads = _fields(process / "status")["Threads"]
    except (FileNotFoundError, ProcessLookupError):
        return None
    resident, proportional, anonymous = (memory[name] << 10 for name in ("Rss", "Pss", "Anonymous"))
    return Use(1, resident, proportional, anonymous, descriptors, threads)


def _fields(path: Path) -> dict[str, int]:
    """Parse the numbers in ``Name:  12 kB`` lines."""
    pairs = (line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
    words = ((name, rest.split()) for name, rest in pairs)
    return {name: int(rest[0]) for name, rest in words if rest and rest[0].isdecimal()}
