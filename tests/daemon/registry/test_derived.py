from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import CheckpointError, NotFoundError
from llmd.registry.derived import DerivedModel, DerivedModels

MARIO = DerivedModel(base="tiny", created=5.0, system="You are Mario.", parameters={"temperature": 0.5})


@pytest.mark.parametrize("name", ["mario", "org/mario", "mario:1b", "../mario", ".hidden", "märio"])
def test_what_is_saved_is_found_by_its_name(tmp_path: Path, name: str) -> None:
    models = DerivedModels(tmp_path / "derived")
    assert models.names() == []
    models.save(name, MARIO)
    assert models.find(name) == (name, MARIO)
    assert models.names() == [name]
    assert [path.parent for path in tmp_path.rglob("*.json")] == [tmp_path / "derived"]
    models.remove(name)
    assert models.find(name) is None


def test_latest_is_the_model_without_a_tag(tmp_path: Path) -> None:
    models = DerivedModels(tmp_path)
    models.save("mario", MARIO)
    assert models.find("mario:latest") == ("mario", MARIO)
    assert models.find("mari") is None
    assert models.find("x" * 5000) is None


def test_saving_again_replaces_what_was_there(tmp_path: Path) -> None:
    models = DerivedModels(tmp_path)
    models.save("mario", MARIO)
    models.save("mario", DerivedModel(base="other", created=6.0))
    assert models.find("mario") == ("mario", DerivedModel(base="other", created=6.0))
    assert models.names() == ["mario"]


def test_what_cannot_be_removed_or_read_is_said(tmp_path: Path) -> None:
    models = DerivedModels(tmp_path)
    with pytest.raises(NotFoundError):
        models.remove("mario")
    models.save("mario", MARIO)
    (tmp_path / "mario.json").write_text("{")
    with pytest.raises(CheckpointError, match="no derived model"):
        models.find("mario")
