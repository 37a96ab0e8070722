"""Simulated machines for tests: sysfs, control groups and affinity mask."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from llmd.api.machine import num_processors
from llmd_backend_cpu import placement
from llmd_backend_cpu.topology import usable_processors

CPU = "sys/devices/system/cpu/cpu{}"


class Machine:
    """Logical processors ``n``, ``n + siblings``, … share a core; one sysfs file marks efficiency cores."""

    def __init__(
        self,
        processors: Sequence[int],
        *,
        siblings: int | None = None,
        single: Collection[int] = (),
        slow: Collection[int] = (),
        slow_told_by: str = "",
        slow_speed: int = 600,
        nodes: Sequence[Collection[int]] = (),
        allowed: Collection[int] | None = None,
        quota: float | None = None,
    ) -> None:
        """``single`` processors have a core to themselves; ``quota`` is in processors."""
        self._files: dict[str, str] = {}
        self._nodes = nodes
        self._allowed = set(processors if allowed is None else allowed)
        for number in processors:
            if siblings is not None and number not in single:
                shared = [n for n in processors if n % siblings == number % siblings and n not in single]
                text = ",".join(map(str, shared))
                self._files[f"{CPU.format(number)}/topology/thread_siblings_list"] = text
            if slow_told_by not in ("", "cpu_atom"):
                speed = slow_speed if number in slow else 1000
                self._files[f"{CPU.format(number)}/{slow_told_by}"] = f"{speed}\n"
        if slow_told_by == "cpu_atom":
            self._files["sys/devices/cpu_atom/cpus"] = f"{min(slow)}-{max(slow)}\n"
        if quota is not None:
            self._files["proc/self/cgroup"] = "0::/\n"
            self._files["sys/fs/cgroup/cpu.max"] = f"{int(quota * 100000)} 100000\n"

    def use(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        """Make the CPU backend see this machine."""
        for name, text in self._files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        for node, members in enumerate(self._nodes):
            for number in members:
                (root / CPU.format(number) / f"node{node}").mkdir(parents=True)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: self._allowed)
        monkeypatch.setattr(placement, "usable_processors", functools.partial(usable_processors, root))
        monkeypatch.setattr(placement, "num_processors", functools.partial(num_processors, root))
