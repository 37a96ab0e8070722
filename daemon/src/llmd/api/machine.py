"""What this machine gives a process: processors, memory, and its name. For devices that live in main memory.

Read from Linux; elsewhere the plain answers.
"""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")

_MEMORY_FILES = (
    ("memory.max", "memory.current", ("active_file", "inactive_file"), "file_mapped"),
    (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ("total_active_file", "total_inactive_file"),
        "total_mapped_file",
    ),
)
"""Of control groups of version 2 and 1: the limit, what is used, what of that are pages of files, and what of these is mapped."""


def num_processors(root: Path = ROOT) -> int:
    """Logical processors that the process may use, cut to the processor time that its control groups grant."""
    quotas = [_quota(folder) for folder in _control_groups(root, "cpu")]
    granted = (int(quota + 0.5) for quota in quotas if quota is not None)
    return max(1, min(len(os.sched_getaffinity(0)), *granted, 1 << 16))


def num_threads(root: Path = ROOT) -> int:
    """Physical cores among `num_processors`."""
    cores = {_core(root, cpu) for cpu in os.sched_getaffinity(0)}
    return min(len(cores), num_processors(root))


def available_bytes(root: Path = ROOT) -> int:
    """Memory that can still be had: what the machine has available, cut to what is left of each control group.

    Pages of files can be dropped, but not those that a process has mapped: they may be weights that every step reads.
    """
    left = [_bytes_left(folder) for folder in _control_groups(root, "memory")]
    return max(0, min(_machine_bytes(root), *(value for value in left if value is not None), 1 << 62))


def address_space_limit() -> int | None:
    """Bytes of addresses that this process may use, as ``ulimit -v`` sets them; None without a limit."""
    limit, _most = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def cache_bytes(root: Path = ROOT) -> int:
    """Bytes of the last-level caches that belong to the processors of the process; 0 where nothing tells."""
    caches = (_last_cache(root, cpu) for cpu in os.sched_getaffinity(0))
    return sum(dict(cache for cache in caches if cache is not None).values())


def cpu_name(root: Path = ROOT) -> str:
    """The model name of the processor, or its architecture."""
    for line in _lines(root / "proc/cpuinfo"):
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()


def _core(root: Path, cpu: int) -> str:
    """A name for the core that a logical processor belongs to: its list of siblings."""
    siblings = root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
    return next(iter(_lines(siblings)), str(cpu))


def _last_cache(root: Path, cpu: int) -> tuple[str, int] | None:
    """The processors that share the last-level cache of one, and its size in bytes."""
    folders = (root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*")
    levels = [(_word(folder / "level"), folder) for folder in folders]
    if not levels:
        return None
    _, last = max(levels)
    return _word(last / "shared_cpu_list"), int(_word(last / "size").rstrip("K") or 0) * 1024


def _control_groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of the process's control groups and of all above them, of version 2 and of the controller's version 1."""
    mounts = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, path = line.split(":", 2)
        top = mounts if number == "0" else mounts / controllers
        if number == "0" or controller in controllers.split(","):
            folder = top / path.lstrip("/")
            yield from (place for place in (folder, *folder.parents) if place.is_relative_to(top))


def _quota(folder: Path) -> float | None:
    """Processors' worth of time that a control group grants."""
    quota, period = _cpu_limit(folder)
    return int(quota) / int(period) if quota.isdigit() else None


def _cpu_limit(folder: Path) -> tuple[str, str]:
    """Microseconds of processor time in each period of so many microseconds; ``max``, -1 or nothing for no limit."""
    for line in _lines(folder / "cpu.max"):
        quota, period = line.split()
        return quota, period
    return _word(folder / "cpu.cfs_quota_us"), _word(folder / "cpu.cfs_period_us")


def _bytes_left(folder: Path) -> int | None:
    """Bytes between a control group's use and its limit; file pages that can be dropped count as unused."""
    for limit_name, used_name, file_names, mapped_name in _MEMORY_FILES:
        limit, used = _word(folder / limit_name), _word(folder / used_name)
        if limit.isdigit() and used.isdigit():
            pages = dict(line.split() for line in _lines(folder / "memory.stat"))
            files = sum(int(pages.get(name, 0)) for name in file_names)
            return int(limit) - int(used) + max(0, files - int(pages.get(mapped_name, 0)))
    return None


def _machine_bytes(root: Path) -> int:
    told = dict(line.split(":", 1) for line in _lines(root / "proc/meminfo"))
    if "MemAvailable" in told:
        kib = int(told["MemAvailable"].split()[0]) - int(told.get("Mapped", "0").split()[0])
        return kib * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _word(path: Path) -> str:
    return next(iter(_lines(path)), "").strip()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
