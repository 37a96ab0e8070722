"""The processors that this process may use: which share a core, which are slower than others, and whose memory is near.

Read from Linux's sysfs; where it says nothing, every logical processor is a core like the others, on one node.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from llmd.api.machine import ROOT

SLOWER = 0.85
"""Below this share of the fastest core's speed a core is an efficiency core. Cores of one kind differ by a few percent."""


class Processor(msgspec.Struct, frozen=True, order=True):
    """A logical processor. In the order in which threads had best take them: the first of each core before its siblings,
    performance cores before efficiency cores, node by node.

    ``sibling``: how many logical processors of its core come before it.
    """

    sibling: int
    slow: bool
    node: int
    number: int


def usable_processors(root: Path = ROOT) -> tuple[Processor, ...]:
    """Those of the affinity mask, in order."""
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
    """Efficiency cores: those that the kernel names so, else those of less capacity, else those of a lower top frequency."""
    atoms = set(_listed(_text(root / "sys/devices/cpu_atom/cpus"))) & set(numbers)
    if atoms:
        return atoms if len(atoms) < len(numbers) else set()
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        speeds = {number: int(_text(_folder(root, number) / name) or 0) for number in numbers}
        if slow := {number for number in numbers if speeds[number] < SLOWER * max(speeds.values())}:
            return slow
    return set()


def _node(root: Path, number: int) -> int:
    """The NUMA node of a logical processor."""
    nodes = (folder.name.removeprefix("node") for folder in _folder(root, number).glob("node[0-9]*"))
    return min(map(int, nodes), default=0)


def _folder(root: Path, number: int) -> Path:
    return root / f"sys/devices/system/cpu/cpu{number}"


def _listed(text: str) -> Iterator[int]:
    """The numbers of a list such as ``0-3,8``."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
