"""The processor and the memory of this machine, or of the container that llmd runs in."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from llmd.api.byte_size import format_bytes
from llmd.api.machine import read_lines, total_bytes
from llmd.cli.composition import build_store
from llmd.cli.doctor.check import Check, Surroundings, worst
from llmd.registry.stored_model import StoredModel

KIB = 1024
LITTLE_MEMORY = 0.1
"""Share of the memory below which swapping slows everything down."""
MUCH_SWAP = 0.5
NEVER_OVERCOMMIT = "2"


def checks(around: Surroundings) -> Iterator[Check]:
    settings, root = around.settings, around.root
    yield processor_check(root, platform.machine())
    yield overcommit_check(root)
    yield swap_check(root)
    limit = settings.config.server.models.max_memory
    models = build_store(around.directories).list()
    if limit is None:
        memory, fix = total_bytes(root), ""
        what = "this machine, or its container, has"
    else:
        origin = settings.origins["server.max_memory"]
        memory, what = limit, f"max_memory from {origin.place} is"
        fix = f"raise the limit, or remove it: `{origin.removal('server.max_memory')}`"
    yield from worst(
        models_checks(models, memory, what, fix), Check("memory", "ok", f"{what} {format_bytes(memory)}")
    )


def processor_check(root: Path, machine: str) -> Check:
    """Check for AVX2, which the fast kernels for x86 need."""
    info = read_lines(root / "proc/cpuinfo")
    flags = next((line.partition(":")[2].split() for line in info if line.startswith("flags")), [])
    if machine not in {"x86_64", "AMD64"} or not flags:
        return Check("processor", "ok", machine)
    if "avx2" in flags:
        return Check("processor", "ok", f"{machine} with {'AVX-512' if 'avx512f' in flags else 'AVX2'}")
    seen = "it has no AVX2: the CPU backend uses its plain C++ kernels, which are several times slower"
    fix = "use a processor from 2015 or later; in a virtual machine, pass the host's processor through (-cpu host)"
    return Check("processor", "warn", seen, fix)


def overcommit_check(root: Path) -> Check:
    """Check that the system lets llmd map files that are larger than the memory."""
    if "".join(read_lines(root / "proc/sys/vm/overcommit_memory")).strip() != NEVER_OVERCOMMIT:
        return Check("overcommit", "ok", "memory may be reserved before it is used")
    seen = "vm.overcommit_memory is 2: engines cannot reserve memory that they use later"
    return Check("overcommit", "warn", seen, "as root: `sysctl -w vm.overcommit_memory=0`")


def swap_check(root: Path) -> Check:
    """Check that the machine does not swap: weights that are swapped out are read at each token."""
    info = {line.split(":")[0]: int(line.split()[1]) * KIB for line in read_lines(root / "proc/meminfo")}
    total, available = info.get("MemTotal", 0), info.get("MemAvailable", 0)
    swap, used = info.get("SwapTotal", 0), info.get("SwapTotal", 0) - info.get("SwapFree", 0)
    if used <= MUCH_SWAP * swap or available >= LITTLE_MEMORY * total:
        return Check("swap", "ok", f"{format_bytes(used)} of {format_bytes(swap)} used")
    seen = f"memory is short: {format_bytes(available)} of {format_bytes(total)} available, {format_bytes(used)} swapped out"
    fix = f"unload models (`llmd ps`, `llmd stop MODEL`), or limit them: `llmd config set max_memory {total // 2}`"
    return Check("swap", "warn", seen, fix)


def models_checks(models: Sequence[StoredModel], memory: int, what: str, fix: str) -> Iterator[Check]:
    """Yield a check for each model whose weights do not fit into the memory."""
    for model in models:
        if model.size_bytes > memory:
            seen = f"its weights have {format_bytes(model.size_bytes)}, but {what} {format_bytes(memory)}"
            smaller = f"quantise it: `llmd config set quant q4 --model {shlex.quote(model.name)}`"
            yield Check(f"memory:{model.name}", "warn", seen, fix or smaller)
