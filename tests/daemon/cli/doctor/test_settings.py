"""Wrong settings: found although few commands run with them, and gone after the fix was typed."""

from __future__ import annotations

import pytest

from tests.daemon.cli.doctor.patient import Patient


def test_a_wrong_value_in_the_file(patient: Patient) -> None:
    patient.set_up("# mine\n[engine]\nslots = 'many'  # why?\nmax_ctx = 9\n")
    assert patient.shell("llmd config show").returncode == 2
    found = patient.cured("settings", "settings")
    assert (found["status"], f"engine.slots from {patient.config}:3 is 'many'" in found["seen"]) == (
        "fail",
        True,
    )
    assert patient.config.read_text() == "# mine\n[engine]\nmax_ctx = 9\n"
    assert patient.shell("llmd config show").returncode == 0


def test_each_wrong_value_is_told(patient: Patient) -> None:
    patient.set_up("[engine]\nslots = 0\nslot = 3\n[models.guide]\nkv_dtype = 'f8'\n")
    checks = patient.examined("settings", "export LLMD_THREADS=x")
    places = [check["seen"] for check in checks.values()]
    assert list(checks) == ["settings", "settings:2", "settings:3", "settings:4"]
    assert [line for line in (2, 3, 5) if any(f"{patient.config}:{line}" in seen for seen in places)] == [
        2,
        3,
        5,
    ]
    assert "`unset LLMD_THREADS`" in next(
        check["fix"] for check in checks.values() if "LLMD_THREADS" in check["seen"]
    )


def test_a_wrong_value_of_one_model(patient: Patient) -> None:
    patient.set_up("[models.'tiny']\nkv_dtype = 'f8'\n")
    assert "models.tiny.kv_dtype" in patient.cured("settings", "settings")["seen"]


@pytest.mark.parametrize("variable", ["LLMD_SLOT=4", "LLMD_SLOTS=many"])
def test_a_wrong_variable(patient: Patient, variable: str) -> None:
    found = patient.cured("settings", "settings", plant=f"export {variable}")
    assert variable.partition("=")[0] in found["seen"]
    if variable == "LLMD_SLOT=4":
        assert found["fix"] == "the nearest name is LLMD_SLOTS; to remove it: `unset LLMD_SLOT`"


def test_settings_of_a_model_that_is_not_there(patient: Patient) -> None:
    patient.set_up("[models.tiny]\nslots = 2\n[models.tine]\nkeep_alive = '1h'\n")
    found = patient.examined("settings")["settings"]
    assert (found["status"], found["seen"]) == (
        "warn",
        f"{patient.config}:4: settings for tine, but there is no such model on this machine",
    )
    patient.shell(f"sed -i s/tine/tiny2/ {patient.config}; llmd cp tiny tiny2")
    assert patient.examined("settings")["settings"]["status"] == "ok"


def test_origins_are_named_where_nothing_is_wrong(patient: Patient) -> None:
    patient.set_up("[engine]\nslots = 2\n")
    seen = patient.examined("settings")["settings"]["seen"]
    assert seen == f"from LLMD_ADDR, {patient.config}, LLMD_KV_MEMORY"
