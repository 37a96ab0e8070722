"""Processors and memory that this process may use, for devices that compute in main memory.

Read from Linux's ``/proc`` and ``/sys``; other systems get simple defaults.
"""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")
"""Directory that contains ``proc`` and ``sys``."""

_MEMORY_FILES = (
    ("memory.max", "memory.current", ("active_file", "inactive_file"), "file_mapped"),
    (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ("total_active_file", "total_inactive_file"),
        "total_mapped_file",
    ),
)
"""Files and ``memory.stat`` keys of control groups v2 and v1: limit, usage, file pages, mapped file pages."""


def num_processors(root: Path = ROOT) -> int:
    """Return the logical processors that the process may use, limited by the quota of its control groups."""
    quotas = [_quota(folder) for folder in _control_groups(root, "cpu")]
    granted = (int(quota + 0.5) for quota in quotas if quota is not None)
    return max(1, min(len(os.sched_getaffinity(0)), *granted, 1 << 16))


def num_threads(root: Path = ROOT) -> int:
    """Return the physical cores that the process may use, at most `num_processors`."""
    cores = {_core(root, cpu) for cpu in os.sched_getaffinity(0)}
    return min(len(cores), num_processors(root))


def available_bytes(root: Path = ROOT) -> int:
    """Return the bytes of memory that are still available on the machine and in each control group.

    File pages count as available, except mapped ones: they may be weights that each step reads.
    """
    left = [_bytes_left(folder) for folder in _control_groups(root, "memory")]
    return max(0, min(_machine_bytes(root), *(value for value in left if value is not None), 1 << 62))


def total_bytes(root: Path = ROOT) -> int:
    """Return the bytes of the machine's memory, or the lowest limit of the process's control groups."""
    words = (_word(folder / name) for folder in _control_groups(root, "memory") for name, *_ in _MEMORY_FILES)
    meminfo = dict(line.split(":", 1) for line in read_lines(root / "proc/meminfo"))
    total = meminfo.get("MemTotal", "").split()
    physical = int(total[0]) * 1024 if total else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(physical, *(int(word) for word in words if word.isdigit()), 1 << 62)


def address_space_limit() -> int | None:
    """Return the limit of this process's address space in bytes (``ulimit -v``); None: unlimited."""
    limit, _most = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def cache_bytes(root: Path = ROOT) -> int:
    """Return the total size of the last-level caches of the process's processors in bytes; 0 if unknown."""
    caches = (_last_cache(root, cpu) for cpu in os.sched_getaffinity(0))
    return sum(dict(cache for cache in caches if cache is not None).values())


def cpu_name(root: Path = ROOT) -> str:
    """Return the model name of the processor, or its architecture if the name is unknown."""
    for line in read_lines(root / "proc/cpuinfo"):
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()


def _core(root: Path, cpu: int) -> str:
    """Return an identifier of the core of a logical processor: the list of its sibling threads."""
    siblings = root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
    return next(iter(read_lines(siblings)), str(cpu))


def _last_cache(root: Path, cpu: int) -> tuple[str, int] | None:
    """Return the processors that share a processor's last-level cache, and its size in bytes."""
    folders = (root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*")
    levels = [(_word(folder / "level"), folder) for folder in folders]
    if not levels:
        return None
    _, last = max(levels)
    return _word(last / "shared_cpu_list"), int(_word(last / "size").rstrip("K") or 0) * 1024


def _control_groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of the process's control groups and their ancestors, for v2 and the v1 controller."""
    mounts = root / "sys/fs/cgroup"
    for line in read_lines(root / "proc/self/cgroup"):
        number, controllers, path = line.split(":", 2)
        top = mounts if number == "0" else mounts / controllers
        if number == "0" or controller in controllers.split(","):
            folder = top / path.lstrip("/")
            yield from (place for place in (folder, *folder.parents) if place.is_relative_to(top))


def _quota(folder: Path) -> float | None:
    """Return the CPU quota of a control group in processors; None: no limit."""
    quota, period = _cpu_limit(folder)
    return int(quota) / int(period) if quota.isdigit() else None


def _cpu_limit(folder: Path) -> tuple[str, str]:
    """Return CPU quota and period in microseconds; a quota of ``max``, -1 or nothing means no limit."""
    for line in read_lines(folder / "cpu.max"):
        quota, period = line.split()
        return quota, period
    return _word(folder / "cpu.cfs_quota_us"), _word(folder / "cpu.cfs_period_us")


def _bytes_left(folder: Path) -> int | None:
    """Return the bytes left of a control group's limit; file pages that can be dropped count as free."""
    for limit_name, used_name, file_names, mapped_name in _MEMORY_FILES:
        limit, used = _word(folder / limit_name), _word(folder / used_name)
        if limit.isdigit() and used.isdigit():
            pages = dict(line.split() for line in read_lines(folder / "memory.stat"))
            files = sum(int(pages.get(name, 0)) for name in file_names)
            return int(limit) - int(used) + max(0, files - int(pages.get(mapped_name, 0)))
    return None


def _machine_bytes(root: Path) -> int:
    meminfo = dict(line.split(":", 1) for line in read_lines(root / "proc/meminfo"))
    if "MemAvailable" in meminfo:
        kib = int(meminfo["MemAvailable"].split()[0]) - int(meminfo.get("Mapped", "0").split()[0])
        return kib * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _word(path: Path) -> str:
    return next(iter(read_lines(path)), "").strip()


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file of the system; none if it cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
