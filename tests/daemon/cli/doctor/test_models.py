"""Models that are damaged or cannot be read, and unfinished pulls."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.cli.doctor.models import damage, pulls_check
from llmd.registry.manifest import Manifest, ManifestFile
from llmd.registry.pulled_models import PulledModels
from tests.corrupt import small_model
from tests.daemon.cli.doctor.patient import Patient, as_others_are
from tests.serving.hub import Hub, Repository

NAME = "org/name"


def models_of(patient: Patient) -> Path:
    return patient.home.folder / "data" / "llmd" / "models"


@pytest.fixture
def pulled(patient: Patient, hub: Hub, tmp_path: Path) -> Patient:
    """A user who has pulled a model from a hub on this machine."""
    hub.repositories[NAME] = Repository.of(small_model.write_small_model(tmp_path / "original"))
    user = Patient(patient.home, patient.environment | {"LLMD_HUB": hub.url})
    assert user.shell(f"llmd pull {NAME} -q").returncode == 0
    return user


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_damaged_file_of_a_pulled_model(pulled: Patient, name: str) -> None:
    file = models_of(pulled) / NAME / name
    content = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(content[:-1] if name == "model.safetensors" else content.replace(b"1", b"2"))
    found = pulled.cured("models", f"model:{NAME}")
    assert (found["status"], str(file) in found["seen"]) == ("fail", True)
    assert found["fix"].endswith(f"`llmd rm {NAME} && llmd pull {NAME}`")
    assert (models_of(pulled) / NAME / name).read_bytes() == content


def test_a_missing_file_of_a_pulled_model(tmp_path: Path) -> None:
    manifest = Manifest((ManifestFile("config.json", 2, "0" * 64),))
    assert "cannot be read: No such file" in damage(tmp_path, manifest)
    (tmp_path / "config.json").write_text("{")
    assert "has 1 bytes instead of 2" in damage(tmp_path, manifest)
    (tmp_path / "config.json").write_text("{}")
    assert "has changed since it was pulled" in damage(tmp_path, manifest)


def test_a_damaged_copy_is_pulled_from_where_its_original_came(pulled: Patient) -> None:
    assert pulled.shell(f"llmd cp {NAME} mine").returncode == 0
    (models_of(pulled) / "mine" / "config.json").unlink()
    assert pulled.examined("models")["model:mine"]["fix"].endswith(
        f"`llmd rm mine && llmd pull {NAME}@{'1' * 40}`"
    )


def test_a_model_that_cannot_be_used(patient: Patient) -> None:
    config = models_of(patient) / "tiny" / "config.json"
    content = config.read_text()
    config.write_text("{")
    assert "config.json" in patient.examined("models")["model:tiny"]["seen"]
    config.write_text(content)
    assert patient.examined("models")["models"]["status"] == "ok"


def test_a_models_folder_that_cannot_be_read(patient: Patient) -> None:
    models_of(patient).chmod(0o300)
    found = patient.cured("models", "models:folder", prepare=as_others_are)
    assert found["seen"] == f"{models_of(patient)} cannot be read: Permission denied"


def test_unfinished_pulls(patient: Patient) -> None:
    partial = PulledModels(models_of(patient)).blobs.partial
    partial.mkdir(parents=True)
    for name in ("one", "two", "two.lock"):
        (partial / name).write_bytes(bytes(1024))
    found = patient.cured("models", "pulls")
    assert (found["status"], found["seen"]) == ("warn", "2 files of unfinished pulls take 2.0 KiB")
    assert "pull the model again" in found["fix"]


def test_no_pull_is_unfinished_in_a_new_home(tmp_path: Path) -> None:
    assert pulls_check(tmp_path).status == "ok"
