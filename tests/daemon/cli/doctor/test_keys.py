"""Troubles of the key file: found, and gone after the fix was typed."""

from __future__ import annotations

from pathlib import Path

from llmd.cli.doctor.keys import keys_check
from tests.daemon.cli.doctor.patient import Patient


def test_a_damaged_file(patient: Patient) -> None:
    file = patient.config.with_name("keys.json")
    patient.set_up("")
    file.write_text("[{")
    found = patient.cured("keys", "keys")
    assert (found["status"], str(file) in found["seen"]) == ("fail", True)
    assert file.with_name("keys.json.damaged").exists()
    assert patient.shell("llmd keys add NAME").returncode == 0


def test_a_file_that_others_can_read(patient: Patient) -> None:
    assert patient.shell("llmd keys add laptop").returncode == 0
    file = patient.config.with_name("keys.json")
    file.chmod(0o644)
    assert "other users" in patient.cured("keys", "keys")["seen"]
    assert patient.examined("keys")["keys"]["seen"] == "1 keys"


def test_no_file_is_no_trouble(tmp_path: Path) -> None:
    assert keys_check(tmp_path / "keys.json").status == "ok"
