from __future__ import annotations

import os
import time
from pathlib import Path

from llmd.cli.doctor.clock import clock_check
from tests.daemon.cli.doctor.patient import Patient


def test_a_file_from_the_future(patient: Patient) -> None:
    log = patient.home.state / "daemon.log"
    log.parent.mkdir(parents=True)
    log.touch()
    later = time.time() + 3 * 24 * 3600
    os.utime(log, (later, later))
    found = patient.cured("clock", "clock")
    assert f"{log} was changed on" in found["seen"]
    assert "timedatectl set-ntp true" in found["fix"]


def test_a_clock_before_the_installation(tmp_path: Path) -> None:
    check = clock_check(1e9, 1.7e9, [tmp_path / "none"])
    assert (check.status, check.fix) == ("fail", "set the clock: `timedatectl set-ntp true`")
    assert "it is 2001-09-0" in check.seen
    assert clock_check(1.7e9, 1.7e9 + 60, [tmp_path / "none"]).status == "ok"
