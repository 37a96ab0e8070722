from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from llmd.api.errors import CheckpointError, NotFoundError, RequestError
from llmd.registry.derived import DerivedModel, DerivedModels

MARIO = DerivedModel(base="tiny", created=5.0, system="You are Mario.", parameters={"temperature": 0.5})


@pytest.mark.parametrize("name", ["mario", "org/mario", "mario:1b", "mario-1.5", "org/mario@v1.0:1b"])
def test_what_is_saved_is_found_by_its_name(tmp_path: Path, name: str) -> None:
    models = DerivedModels(tmp_path / "derived")
    assert models.names() == []
    models.save(name, MARIO)
    assert models.find(name) == (name, MARIO)
    assert models.names() == [name]
    assert [path.parent for path in tmp_path.rglob("*.json")] == [tmp_path / "derived"]
    models.remove(name)
    assert models.find(name) is None


@pytest.mark.parametrize("name", ["../mario", ".hidden", "märio", "-rf", "a\nb", "x" * 300])
def test_names_that_no_model_may_have_are_refused(tmp_path: Path, name: str) -> None:
    models = DerivedModels(tmp_path)
    with pytest.raises(RequestError, match="model name"):
        models.save(name, MARIO)
    assert list(tmp_path.iterdir()) == []


def test_the_longest_name_fits_into_a_file_name(tmp_path: Path) -> None:
    models = DerivedModels(tmp_path)
    name = f"{'a.' * 47}a/{'b.' * 47}b:c.d"
    models.save(name, MARIO)
    assert models.names() == [name]


def test_a_model_whose_file_has_more_characters_escaped_is_found_and_removed(tmp_path: Path) -> None:
    models = DerivedModels(tmp_path)
    (tmp_path / "mario-1%2E5.json").write_bytes(msgspec.json.encode(MARIO))
    assert (models.names(), models.find("mario-1.5")) == (["mario-1.5"], ("mario-1.5", MARIO))
    models.save("mario-1.5", DerivedModel(base="other", created=6.0))
    assert models.names() == ["mario-1.5"]
    models.remove("mario-1.5")
    assert models.names() == []


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
    with pytest.raises(CheckpointError, match="not a valid derived model"):
        models.find("mario")


def test_a_copy_changes_nothing_but_the_name() -> None:
    assert DerivedModel("base", 1.0).is_copy
    assert not DerivedModel("base", 1.0, system="Be brief.").is_copy
    assert not DerivedModel("base", 1.0, parameters={"seed": 1}).is_copy
