"""Troubles of the environment: found in a shell, and gone after the fix was typed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from llmd.cli.doctor.environment import home_check, modules_check, programs_check, required_modules
from tests.daemon.cli.doctor.patient import Patient


def test_a_missing_home(patient: Patient) -> None:
    assert "HOME is not set" in patient.cured("environment", "home", plant="unset HOME")["seen"]
    found = patient.cured("environment", "home", plant="export HOME=/nonexistent")
    assert found["seen"] == "HOME is /nonexistent, which is no folder"
    assert "XDG_DATA_HOME" in home_check(None, Path("/nonexistent")).fix


def test_a_package_that_pythonpath_replaces(patient: Patient, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "tiktoken").mkdir(parents=True)
    (other / "tiktoken" / "__init__.py").touch()
    plant = f"export PYTHONPATH={other}:$PYTHONPATH"
    cure = f"export PYTHONPATH={patient.environment.get('PYTHONPATH', '')}"  # where these tests find llmd
    found = patient.cured("environment", "python-path", plant=plant, cure=lambda _command: cure)
    assert found["seen"].endswith(f": {other}/tiktoken/__init__.py")
    assert found["fix"] == "start llmd without it: `unset PYTHONPATH`"


def test_every_package_that_llmd_needs_is_looked_for(tmp_path: Path) -> None:
    modules = required_modules()
    assert {"numpy", "msgspec", "huggingface_hub", "prometheus_client"} <= set(modules)
    (tmp_path / "numpy.py").touch()
    assert modules_check([tmp_path], modules).status == "warn"
    assert modules_check([tmp_path / "none"], modules).status == "ok"


def test_a_library_that_the_search_path_replaces(patient: Patient, tmp_path: Path) -> None:
    mapped = Path("/proc/self/maps").read_text().split()
    real = next(word for word in mapped if re.search(r"/libc\.so\.6$|/ld-musl", word))
    (tmp_path / "libgomp.so.1").symlink_to(real)
    found = patient.cured("environment", "library-path", plant=f"export LD_LIBRARY_PATH={tmp_path}")
    assert found["seen"].endswith(f"{tmp_path}/libgomp.so.1")


def test_two_installations(patient: Patient, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    shutil.copy(tmp_path / "bin" / "llmd", second / "llmd")
    found = patient.cured("environment", "programs", plant=f"export PATH=$PATH:{second}")
    assert found["fix"].endswith(f"`rm {second}/llmd`")
    assert not (second / "llmd").exists()


def test_a_link_to_the_same_program_is_no_trouble_and_environments_use_pip(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    for name in ("one", "two"):
        (tmp_path / name / "llmd").touch(0o755)
    (tmp_path / "two" / "python").touch()
    (tmp_path / "three" / "llmd").symlink_to(tmp_path / "one" / "llmd")
    assert programs_check([tmp_path / "one", tmp_path / "three"]).status == "ok"
    fix = programs_check([tmp_path / "one", tmp_path / "two"]).fix
    assert f"`{tmp_path}/two/python -m pip uninstall llmd-daemon`" in fix
