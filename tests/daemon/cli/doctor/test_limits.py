"""Limits of the process: found in a shell, and gone after the fix was typed."""

from __future__ import annotations

import resource

from llmd.cli.doctor.limits import (
    address_space_check,
    current_umask,
    descriptors_check,
    threads_check,
    umask_check,
)
from tests.daemon.cli.doctor.patient import Patient


def test_files_that_others_may_change(patient: Patient) -> None:
    assert patient.cured("limits", "umask", plant="umask 000")["seen"].startswith("0000: other users")
    assert [umask_check(mask).status for mask in (0o022, 0o077, 0o002)] == ["ok", "ok", "warn"]


def test_the_umask_is_read_and_stays() -> None:
    assert current_umask() == current_umask()


def test_few_file_descriptors(patient: Patient) -> None:
    found = patient.cured(
        "limits",
        "descriptors",
        plant="ulimit -n 512",
        cure=lambda _raise: "llmd config set max_connections 256",
    )
    assert "fewer than 4096 connections" in found["seen"]
    assert "`llmd config set max_connections 256`" in found["fix"]
    assert "`ulimit -n 4352`" in found["fix"]
    assert descriptors_check(resource.RLIM_INFINITY, 4096).status == "ok"


def test_a_limited_address_space(patient: Patient) -> None:
    found = patient.cured("limits", "address-space", plant="ulimit -S -v 4000000")
    assert "limited to 3.8 GiB" in found["seen"]
    assert address_space_check(None).status == "ok"


def test_more_threads_than_processors(patient: Patient) -> None:
    patient.set_up("[engine]\n# many\nthreads = 5000\n")
    found = patient.cured("limits", "threads")
    assert "threads is 5000" in found["seen"]
    assert patient.config.read_text() == "[engine]\n# many\n"
    assert patient.cured("limits", "threads", plant="export LLMD_THREADS=5000")["fix"].endswith(
        "`unset LLMD_THREADS`"
    )
    assert threads_check(None, 2, "").status == "ok"
