"""Fingerprints of what a cached result depends on. If one changes, the result is computed again."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from llmd.host.names import CORE_DISTRIBUTION, PluginName, module_files

# Identify the driver and the device nodes without loading a toolkit.
DRIVER_FILES = (
    "/proc/driver/nvidia/version",
    "/sys/module/nvidia/version",
    "/sys/module/amdgpu/version",
    "/sys/module/xe/version",
)
DEVICE_NODES = ("/dev/dri", "/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd")
# Say which devices a driver shows, and in which order.
DEVICE_VARIABLES = (
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "VK_DRIVER_FILES", "VK_ICD_FILENAMES", "MESA_VK_DEVICE_SELECT"
)  # fmt: skip


def plugin_fingerprint(plugin: PluginName) -> str:
    """Return a digest that changes with the plugin, the files of its package, the core and Python."""
    core = metadata.version(CORE_DISTRIBUTION)
    return _digest([repr(plugin), core, sys.version, *_file_states(plugin.module)])


def files_fingerprint(module: str) -> str:
    """Return a digest that changes with the files of a module's package."""
    return _digest(_file_states(module))


def machine_fingerprint() -> str:
    """Return a digest of the processor, its usable cores, memory, kernel and driver, of device nodes, and of
    the variables that choose devices.
    """
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _digest([
        *_cpu_model(),
        str(sorted(os.sched_getaffinity(0))),
        str(memory_bytes),
        os.uname().release,
        os.uname().machine,
        *(_text(Path(name)) for name in DRIVER_FILES),
        *(entry for name in DEVICE_NODES for entry in _entries(Path(name))),
        *(f"{name}={os.environ.get(name)}" for name in DEVICE_VARIABLES),
    ])  # fmt: skip


def probe_fingerprint(plugin: PluginName, machine: str, trial: str) -> str:
    """Return the fingerprint of a probe; ``trial`` names the function that tests each device."""
    return _digest([plugin_fingerprint(plugin), machine, trial])


def benchmark_fingerprint(plugin: PluginName, machine: str, hardware: str) -> str:
    """Return the fingerprint of a benchmark; ``hardware`` is the device's description."""
    return _digest([plugin_fingerprint(plugin), machine, hardware])


def _file_states(module: str) -> Iterable[str]:
    """Yield each file of a module's package with its size and the time of its last change."""
    stats = ((path, path.stat()) for path in module_files(module))
    return (f"{path}:{stat.st_size}:{stat.st_mtime_ns}" for path, stat in stats)


def _cpu_model() -> list[str]:
    """Return the name and instruction sets of the first processor."""
    lines = _text(Path("/proc/cpuinfo")).split("\n\n")[0].splitlines()
    return [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _entries(path: Path) -> list[str]:
    if not path.exists():
        return []
    return [str(path), *sorted(map(str, path.iterdir()))] if path.is_dir() else [str(path)]


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()
