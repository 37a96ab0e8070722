"""Processors and memory are read from the operating system and its control groups."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

import pytest

from llmd.api.machine import available_bytes, cache_bytes, cpu_name, num_processors, num_threads, total_bytes

GIB = 1 << 30


@pytest.fixture
def four_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3})


def make_root(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_counts_the_processors_of_the_affinity_mask(four_cpus: None, tmp_path: Path) -> None:
    assert num_threads(tmp_path) == 4


def test_siblings_of_one_core_count_once(four_cpus: None, tmp_path: Path) -> None:
    folder = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    siblings = {folder.format(cpu): f"{cpu % 2},{cpu % 2 + 2}\n" for cpu in range(4)}
    assert num_threads(make_root(tmp_path, siblings)) == 2


@pytest.mark.parametrize(
    ("inner", "outer", "threads"),
    [
        ("max 100000", "300000 100000", 3),
        ("150000 100000", "max 100000", 2),
        ("20000 100000", "max 100000", 1),
    ],
)
def test_the_narrowest_quota_decides(
    four_cpus: None, tmp_path: Path, inner: str, outer: str, threads: int
) -> None:
    files = {
        "proc/self/cgroup": "0::/outer/inner\n",
        "sys/fs/cgroup/outer/cpu.max": outer,
        "sys/fs/cgroup/outer/inner/cpu.max": inner,
    }
    assert num_threads(make_root(tmp_path, files)) == threads


@pytest.mark.parametrize(("quota", "processors"), [("-1", 4), ("150000", 2), ("50000", 1)])
def test_version_1_of_control_groups_grants_processors_too(
    four_cpus: None, tmp_path: Path, quota: str, processors: int
) -> None:
    files = {
        "proc/self/cgroup": "5:memory:/\n4:cpu,cpuacct:/outer\n1:name=systemd:/\n0::/\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/cpu,cpuacct/outer/cpu.cfs_quota_us": f"{quota}\n",
        "sys/fs/cgroup/cpu,cpuacct/outer/cpu.cfs_period_us": "100000\n",
    }
    assert num_processors(make_root(tmp_path, files)) == processors


def test_a_container_sees_its_own_limits_at_the_top_of_the_hierarchy(four_cpus: None, tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:cpu:/docker/0123456789ab\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    assert num_processors(make_root(tmp_path, files)) == 3


def test_last_level_caches_count_once_for_all_that_share_them(four_cpus: None, tmp_path: Path) -> None:
    assert cache_bytes(tmp_path) == 0
    files: dict[str, str] = {}
    for cpu in range(4):
        for index, (level, size) in enumerate([(1, "32K"), (1, "32K"), (2, "1024K"), (3, "32768K")]):
            folder = f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
            shared = "0-1" if cpu < 2 else "2-3"
            files |= {
                f"{folder}/level": f"{level}\n",
                f"{folder}/size": f"{size}\n",
                f"{folder}/shared_cpu_list": f"{shared if level == 3 else cpu}\n",
            }
    assert cache_bytes(make_root(tmp_path, files)) == 64 << 20


def test_memory_is_what_the_machine_has_available(tmp_path: Path) -> None:
    files = {"proc/meminfo": "MemTotal: 8000 kB\nMemAvailable: 5000 kB\n"}
    assert available_bytes(make_root(tmp_path, files)) == 5000 * 1024


def test_all_memory_is_that_of_the_machine_or_the_limit_of_a_control_group(tmp_path: Path) -> None:
    files = {"proc/meminfo": "MemTotal: 8000 kB\nMemAvailable: 5000 kB\n"}
    assert total_bytes(make_root(tmp_path, files)) == 8000 * 1024
    files |= {"proc/self/cgroup": "0::/inner\n", "sys/fs/cgroup/inner/memory.max": "max\n"}
    assert total_bytes(make_root(tmp_path, files)) == 8000 * 1024
    files |= {"sys/fs/cgroup/inner/memory.max": "1000000\n"}
    assert total_bytes(make_root(tmp_path, files)) == 1_000_000
    assert total_bytes(tmp_path / "absent") > 0


def test_memory_is_cut_to_what_a_control_group_has_left(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": "MemAvailable: 99999999 kB\n",
        "proc/self/cgroup": "0::/outer/inner\n",
        "sys/fs/cgroup/outer/memory.max": str(4 * GIB),
        "sys/fs/cgroup/outer/memory.current": str(3 * GIB),
        "sys/fs/cgroup/outer/memory.stat": f"anon 5\ninactive_file {GIB // 2}\n",
        "sys/fs/cgroup/outer/inner/memory.max": "max\n",
        "sys/fs/cgroup/outer/inner/memory.current": str(GIB),
    }
    assert available_bytes(make_root(tmp_path, files)) == GIB + GIB // 2


def test_pages_of_files_that_a_process_has_mapped_are_not_to_be_had(tmp_path: Path) -> None:
    files = {"proc/meminfo": "MemAvailable:    5000 kB\nMapped:    1500 kB\n"}
    assert available_bytes(make_root(tmp_path, files)) == 3500 * 1024
    files |= {
        "proc/self/cgroup": "0::/inner\n",
        "sys/fs/cgroup/inner/memory.max": "1000000",
        "sys/fs/cgroup/inner/memory.current": "900000",
        "sys/fs/cgroup/inner/memory.stat": "file 99\nactive_file 300000\ninactive_file 50000\nfile_mapped 250000\n",
    }
    assert available_bytes(make_root(tmp_path, files)) == 200_000


def test_version_1_of_control_groups_limits_memory_too(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": "MemAvailable: 99999999 kB\n",
        "proc/self/cgroup": "4:memory:/inner\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": str(5 * GIB),
        "sys/fs/cgroup/memory/inner/memory.limit_in_bytes": str(4 * GIB),
        "sys/fs/cgroup/memory/inner/memory.usage_in_bytes": str(3 * GIB),
        "sys/fs/cgroup/memory/inner/memory.stat": f"inactive_file 7\ntotal_inactive_file {GIB // 4}\n"
        "total_active_file 9\ntotal_mapped_file 9\n",
    }
    assert available_bytes(make_root(tmp_path, files)) == GIB + GIB // 4


def test_a_group_beyond_its_limit_has_nothing_left(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": "MemAvailable: 5000 kB\n",
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": "1000",
        "sys/fs/cgroup/memory.current": "2000",
    }
    assert available_bytes(make_root(tmp_path, files)) == 0


def test_names_the_processor_or_at_least_its_architecture(tmp_path: Path) -> None:
    assert cpu_name(tmp_path) == platform.machine()
    make_root(tmp_path, {"proc/cpuinfo": "processor : 0\nmodel name\t: Some CPU @ 3 GHz\n"})
    assert cpu_name(tmp_path) == "Some CPU @ 3 GHz"
