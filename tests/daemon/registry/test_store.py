from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api import NotFoundError
from llmd.registry.derived import DerivedModel
from llmd.registry.store import Store
from tests.corrupt import small_model
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model


def names(store: Store) -> list[str]:
    return [model.name for model in store.list()]


def test_lists_builtin_models_and_directories_by_name(store: Store) -> None:
    assert names(store) == ["guide", "org/tiny", "smaller", "smol"]
    assert [model.builtin for model in store.list()] == [True, False, False, False]
    assert not any(model.reason for model in store.list())


def test_a_model_that_was_copied_in_is_there_at_once(store: Store, models: Path) -> None:
    small_model.write_small_model(models / "new")
    assert "new" in names(store)


def test_a_store_without_a_directory_has_its_builtin_models(tmp_path: Path) -> None:
    assert Store(tmp_path / "absent", {}).list() == []


def test_directories_that_hold_no_model_are_passed_over(store: Store, models: Path) -> None:
    (models / "notes").mkdir()
    (models / ".cache").mkdir()
    (models / ".cache" / "config.json").touch()
    (models / "readme.txt").touch()
    assert names(store) == ["guide", "org/tiny", "smaller", "smol"]


def test_a_model_may_be_a_link(store: Store, models: Path) -> None:
    (models / "linked").symlink_to(models / "smol")
    assert "linked" in names(store)


def test_a_link_that_cannot_be_followed_hides_no_model(store: Store, models: Path) -> None:
    (models / "lost").symlink_to("x" * 300)
    (models / "smol" / "config.json").unlink()
    (models / "smol" / "config.json").symlink_to("x" * 300)
    assert names(store) == ["guide", "org/tiny", "smaller", "smol"]
    assert "config.json: cannot be read" in store.find("smol", allow_path=False).reason


def test_a_broken_model_is_listed_with_its_reason(store: Store, models: Path) -> None:
    (models / "smol" / "model.safetensors").write_bytes(b"not a model")
    (models / "org" / "tiny" / "config.json").unlink()
    reasons = {model.name: model.reason for model in store.list()}
    assert "model.safetensors" in reasons["smol"]
    assert "config.json: the file is missing" in reasons["org/tiny"]
    assert not reasons["smaller"]


def test_a_builtin_name_cannot_be_taken(store: Store, models: Path) -> None:
    small_model.write_small_model(models / "guide")
    found = store.find("guide", allow_path=False)
    assert found.builtin
    assert found.directory != models / "guide"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("smol", "smol"),
        ("smol:latest", "smol"),
        ("org/tiny", "org/tiny"),
        ("smo", "smol"),
        ("or", "org/tiny"),
    ],
)
def test_finds_by_name_tag_and_unique_prefix(store: Store, asked: str, found: str) -> None:
    assert store.find(asked, allow_path=False).name == found


def test_an_exact_name_wins_over_longer_ones(store: Store, models: Path) -> None:
    small_model.write_small_model(models / "smol-large")
    assert store.find("smol", allow_path=False).name == "smol"


def test_a_prefix_of_several_names_is_not_guessed(store: Store) -> None:
    with pytest.raises(NotFoundError, match="2 models begin with 'sm': smaller, smol"):
        store.find("sm", allow_path=False)


@pytest.mark.parametrize("asked", ["smoll", "x", "", "a\0b", "y" * 5000])
@pytest.mark.parametrize("allow_path", [True, False])
def test_an_unknown_name_is_answered_with_the_three_nearest(
    store: Store, asked: str, *, allow_path: bool
) -> None:
    with pytest.raises(NotFoundError, match=r"nearest names are [\w/]+, [\w/]+, [\w/]+ \(") as caught:
        store.find(asked, allow_path=allow_path)
    assert "llmd list" in caught.value.hint


def test_the_nearest_name_comes_first(store: Store) -> None:
    with pytest.raises(NotFoundError, match="nearest names are smol, "):
        store.find("smoll", allow_path=False)


def test_a_directory_elsewhere_is_found_by_its_path(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = small_model.write_small_model(tmp_path / "elsewhere" / "mine")
    assert store.find(str(directory), allow_path=True).directory == directory
    monkeypatch.chdir(directory)
    found = store.find(".", allow_path=True)
    assert (found.name, found.directory) == ("mine", directory)


def test_a_gguf_file_is_a_model_of_its_own(store: Store, tmp_path: Path) -> None:
    path = write_gguf(tiny_model("llama2-mha"), tmp_path / "tiny-f32.gguf")
    (tmp_path / "notes.txt").touch()
    found = store.find(str(path), allow_path=True)
    assert (found.name, found.directory, found.reason) == ("tiny-f32", path, "")
    with pytest.raises(
        NotFoundError, match=r"notes\.txt is not a model: a model is a directory, or a file that ends"
    ):
        store.find(str(tmp_path / "notes.txt"), allow_path=True)


@pytest.mark.parametrize("name", ["/nonexistent/dir", "./nope", "~/nope", "~nobody-here/nope", "absent.gguf"])
def test_a_path_that_does_not_exist_is_said_to_be_that(store: Store, name: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        store.find(name, allow_path=True)
    assert caught.value.message == f"no such file or directory: {name}"
    assert "`llmd list`" in caught.value.hint


@pytest.mark.parametrize("name", ["smoll", "org/nope"])
def test_a_name_that_may_be_a_models_has_the_nearest_ones(store: Store, name: str) -> None:
    with pytest.raises(NotFoundError, match="the nearest names are"):
        store.find(name, allow_path=True)


def test_a_path_is_refused_to_who_may_not_name_one(store: Store, models: Path) -> None:
    with pytest.raises(NotFoundError):
        store.find(str(models / "smol"), allow_path=False)


def test_a_name_comes_before_a_path(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "smol").mkdir()
    monkeypatch.chdir(tmp_path)
    assert store.find("smol", allow_path=True).directory == tmp_path / "models" / "smol"


def test_derived_models_are_their_bases_under_another_name(store: Store) -> None:
    store.derived.save("mario", DerivedModel(base="smol", created=5.0))
    store.derived.save("orphan", DerivedModel(base="gone", created=5.0))
    mario, orphan = store.list_derived()
    (smol,) = (model for model in store.list() if model.name == "smol")
    assert (mario.name, mario.base, mario.modified.year) == ("mario", "smol", 1970)
    assert (mario.directory, mario.architecture, mario.reason) == (smol.directory, smol.architecture, "")
    assert (orphan.name, "gone" in orphan.reason) == ("orphan", True)
