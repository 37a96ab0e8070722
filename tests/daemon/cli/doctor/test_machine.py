"""Troubles of the machine, planted as files of another ``/proc`` and ``/sys``."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.cli.doctor.machine import overcommit_check, processor_check, swap_check
from tests.daemon.cli.doctor.patient import Patient

OLD = "processor: 0\nflags\t\t: fpu sse4_2 avx\n"
MEMORY = "MemTotal: {total} kB\nMemAvailable: {available} kB\nSwapTotal: 1000 kB\nSwapFree: {free} kB\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "machine"
    (folder / "proc" / "sys" / "vm").mkdir(parents=True)
    (folder / "proc" / "self").mkdir()
    (folder / "sys" / "fs" / "cgroup").mkdir(parents=True)
    return folder


def at(root: Path) -> str:
    return f"export LLMD_TEST_ROOT={root}"


def test_a_processor_without_avx2(patient: Patient, root: Path) -> None:
    info = root / "proc" / "cpuinfo"
    info.write_text(OLD)
    newer = f"sed -i 's/avx$/avx avx2/' {info}"  # a newer processor, or the flags of the host
    fix = patient.examined("machine", at(root))["processor"]["fix"]
    assert "pass the host's processor through" in fix
    info.write_text(OLD)
    before = processor_check(root, "x86_64")
    assert (before.status, "plain C++" in before.seen) == ("warn", True)
    patient.shell(newer)
    assert processor_check(root, "x86_64").status == "ok"
    assert processor_check(root, "aarch64").status == "ok"
    assert processor_check(root / "none", "x86_64").status == "ok"


def test_memory_that_must_not_be_promised(patient: Patient, root: Path) -> None:
    (root / "proc" / "sys" / "vm" / "overcommit_memory").write_text("2\n")
    found = patient.cured(
        "machine",
        "overcommit",
        plant=at(root) + f"; sysctl() {{ echo ${{2#*=}} > {root}/proc/sys/${{2%=*}}; }}",
        cure=lambda command: command.replace("vm.", "vm/"),
    )
    assert found["fix"] == "as root: `sysctl -w vm.overcommit_memory=0`"
    assert overcommit_check(root / "none").status == "ok"


@pytest.mark.parametrize(
    ("available", "free", "status"), [(50, 100, "warn"), (50, 900, "ok"), (500, 100, "ok")]
)
def test_a_machine_that_swaps(root: Path, available: int, free: int, status: str) -> None:
    (root / "proc" / "meminfo").write_text(MEMORY.format(total=1000, available=available, free=free))
    check = swap_check(root)
    assert check.status == status
    if status == "warn":
        assert "`llmd config set max_memory 512000`" in check.fix


def test_a_model_that_is_larger_than_the_limit(patient: Patient) -> None:
    patient.set_up("[server]\nmax_memory = '1KiB'\n")
    found = patient.cured("machine", "memory:tiny")
    assert "max_memory from" in found["seen"]
    assert f"{patient.config}:2 is 1.0 KiB" in found["seen"]


def test_a_model_that_is_larger_than_the_container(patient: Patient, root: Path) -> None:
    group = root / "sys" / "fs" / "cgroup"
    (root / "proc" / "self" / "cgroup").write_text("0::/\n")
    (root / "proc" / "meminfo").write_text(MEMORY.format(total=1 << 20, available=1 << 20, free=1000))
    (group / "memory.max").write_text("4096\n")
    found = patient.examined("machine", at(root))["memory:tiny"]
    assert "this machine, or its container, has 4.0 KiB" in found["seen"]
    assert "`llmd config set quant q4 --model tiny`" in found["fix"]
    (group / "memory.max").write_text("max\n")
    assert "memory:tiny" not in patient.examined("machine", at(root))
