"""The processors that this process may use: their cores, their speed and their NUMA nodes.

Read from Linux's sysfs. Without information there, all logical processors count as equal cores on one node.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from llmd.api.machine import ROOT

SLOWER = 0.85
"""A core below this share of the top speed is an efficiency core. Equal cores differ by a few percent."""


class Processor(msgspec.Struct, frozen=True, order=True):
    """A logical processor.

    They sort in the order in which threads should use them: the first processor of each core before its
    siblings, performance cores before efficiency cores, node by node.
    """

    sibling: int
    """How many logical processors of its core come before it."""
    slow: bool
    """Whether its core is an efficiency core."""
    node: int
    number: int


def usable_processors(root: Path = ROOT) -> tuple[Processor, ...]:
    """Return the processors in the affinity mask, in order."""
    numbers = sorted(os.sched_getaffinity(0))
    slow = _slow(root, numbers)
    taken: dict[str, int] = {}
    found = []
    for number in numbers:
        core = _text(_folder(root, number) / "topology/thread_siblings_list") or str(number)
        found.append(Processor(taken.get(core, 0), number in slow, _node(root, number), number))
        taken[core] = taken.get(core, 0) + 1
    return tuple(sorted(found))


def _slow(root: Path, numbers: Collection[int]) -> set[int]:
    """Return the efficiency cores: by the kernel's list, else by capacity, else by top frequency."""
    atoms = set(_listed(_text(root / "sys/devices/cpu_atom/cpus"))) & set(numbers)
    if atoms:
        return atoms if len(atoms) < len(numbers) else set()
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        speeds = {number: int(_text(_folder(root, number) / name) or 0) for number in numbers}
        if slow := {number for number in numbers if speeds[number] < SLOWER * max(speeds.values())}:
            return slow
    return set()


def _node(root: Path, number: int) -> int:
    """Return the NUMA node of a logical processor."""
    nodes = (folder.name.removeprefix("node") for folder in _folder(root, number).glob("node[0-9]*"))
    return min(map(int, nodes), default=0)


def _folder(root: Path, number: int) -> Path:
    return root / f"sys/devices/system/cpu/cpu{number}"


def _listed(text: str) -> Iterator[int]:
    """Yield the numbers of a list such as ``0-3,8``."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
