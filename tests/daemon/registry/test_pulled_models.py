from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from llmd.api.errors import ConflictError, NotFoundError, RequestError
from llmd.registry.manifest import Manifest, ManifestFile
from llmd.registry.pulled_models import STORE, PulledModels


@pytest.fixture
def library(tmp_path: Path) -> PulledModels:
    return PulledModels(tmp_path / "models", reserved=("guide",))


def manifest(library: PulledModels, *, commit: str = "1", **files: str) -> Manifest:
    """Return a version of these files and store their blobs."""
    entries = []
    for name, text in files.items():
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        library.root.mkdir(exist_ok=True)
        file = library.root / "file"
        file.write_text(text)
        library.blobs.adopt(file, sha256)
        entries.append(ManifestFile(name.replace("_json", ".json"), len(text), sha256))
    return Manifest(tuple(entries), source="org/name", commit=commit)


def install(library: PulledModels, name: str, *, commit: str = "1", **files: str) -> Manifest:
    version = manifest(library, commit=commit, **files)
    library.install(name, version)
    return version


def blobs(library: PulledModels) -> int:
    return len(list(library.blobs.folder.iterdir()))


def test_a_version_is_a_plain_directory_whose_files_take_no_bytes_of_their_own(library: PulledModels) -> None:
    version = install(library, "org/name", config_json="{}", weights="w" * 100)
    directory = library.root / "org" / "name"
    assert {path.name: path.read_text() for path in directory.iterdir()} == {
        "config.json": "{}",
        "weights": "w" * 100,
    }
    assert (directory / "weights").samefile(library.blobs.path(version.files[1].sha256))
    assert library.manifest_of(directory) == version


def test_where_there_are_no_hard_links_files_are_links_to_blobs(
    library: PulledModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_self: Path, _target: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "hardlink_to", refused)
    install(library, "org/name", weights="w")
    assert (library.root / "org" / "name" / "weights").is_symlink()
    assert (library.root / "org" / "name" / "weights").read_text() == "w"
    assert library.remove("org/name") == 1


def test_a_model_that_is_pulled_anew_changes_at_once_and_old_files_go(library: PulledModels) -> None:
    install(library, "name", config_json="{}", weights="old")
    install(library, "name", commit="2", config_json="{}", weights="new")
    library.collect()
    assert (library.root / "name" / "weights").read_text() == "new"
    assert blobs(library) == 2


def test_an_engine_keeps_the_version_that_it_has(library: PulledModels) -> None:
    install(library, "name", weights="old")
    directory = (library.root / "name").resolve()
    lease = library.lease(library.root / "name")
    assert lease is not None
    install(library, "name", commit="2", weights="new")
    library.collect()
    assert (directory / "weights").read_text() == "old"
    lease.close()
    library.collect()
    assert not directory.exists()
    assert blobs(library) == 1


def test_what_is_leased_is_not_removed(library: PulledModels) -> None:
    install(library, "org/name", weights="w")
    lease = library.lease(library.root / "org/name")
    assert lease is not None
    with pytest.raises(ConflictError, match="org/name is loaded"):
        library.remove("org/name")
    assert (library.root / "org/name/weights").exists()
    lease.close()
    assert library.remove("org/name") == 1
    assert not (library.root / "org").exists()


def test_removing_frees_what_no_other_name_needs(library: PulledModels) -> None:
    install(library, "a", common="c" * 10, own="a")
    install(library, "b", commit="2", common="c" * 10, own="bb")
    assert library.remove("a") == 1
    assert (library.root / "b" / "common").exists()
    assert library.remove("b") == 12
    assert blobs(library) == 0


def test_a_copy_shares_the_version_and_outlives_the_original(library: PulledModels) -> None:
    install(library, "a", weights="w")
    library.copy(library.root / "a", "org/b:latest")
    assert library.remove("a") == 0
    assert (library.root / "org" / "b" / "weights").read_text() == "w"
    assert library.remove("org/b") == 1


def test_only_versions_are_copied(library: PulledModels, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(NotFoundError, match="did not download"):
        library.copy(tmp_path / "mine", "copy")
    assert not (library.root / "copy").exists()


def test_blobs_of_a_pull_under_way_are_not_freed(library: PulledModels) -> None:
    install(library, "a", weights="w")
    with library.pulling():
        manifest(library, other="not yet in a manifest")
        assert library.remove("a") == 0
        assert blobs(library) == 2
    assert library.collect() == 22
    assert blobs(library) == 0


def test_what_llmd_did_not_fetch_it_neither_replaces_nor_removes(library: PulledModels) -> None:
    (library.root / "mine").mkdir(parents=True)
    for change in (lambda: install(library, "mine", a="1"), lambda: library.remove("mine")):
        with pytest.raises(ConflictError, match="did not download"):
            change()
    (library.root / "linked").symlink_to("mine")
    with pytest.raises(ConflictError, match="did not download"):
        library.remove("linked")


def test_names_that_are_taken_are_refused(library: PulledModels) -> None:
    version = install(library, "a", weights="w")
    with pytest.raises(ConflictError, match="there is already a model a"):
        library.copy(library.root / "a", "a")
    with pytest.raises(ConflictError, match="built-in"):
        library.copy(library.root / "a", "guide")
    with pytest.raises(ConflictError, match="is a model itself"):
        library.install("a/b", version)
    with pytest.raises(ConflictError, match="built in"):
        library.remove("guide")


@pytest.mark.parametrize("name", ["../x", f"{STORE}/blobs", "/etc", ""])
def test_no_name_leads_out_of_the_store(library: PulledModels, name: str) -> None:
    install(library, "a", weights="w")
    for change in (lambda: library.copy(library.root / "a", name), lambda: library.remove(name)):
        with pytest.raises(RequestError):
            change()


def test_what_is_not_there_cannot_be_removed(library: PulledModels) -> None:
    with pytest.raises(NotFoundError, match="no model a"):
        library.remove("a")


def test_a_directory_of_the_users_has_no_lease(library: PulledModels, tmp_path: Path) -> None:
    assert library.lease(tmp_path) is None
    assert library.manifest_of(tmp_path) is None


def test_a_version_that_is_just_being_removed_cannot_be_leased(library: PulledModels) -> None:
    install(library, "a", weights="w")
    version = (library.root / "a").resolve()
    link = library.root / "other"
    link.symlink_to(version)
    (version / "weights").unlink()
    version.rmdir()
    with pytest.raises(NotFoundError, match="being removed"):
        library.lease(link)


def test_a_version_that_was_damaged_is_built_anew(library: PulledModels) -> None:
    version = install(library, "a", weights="w")
    directory = (library.root / "a").resolve()
    next((library.root / STORE / "manifests").iterdir()).write_text("{")
    (directory / "weights").unlink()
    library.install("a", version)
    assert (library.root / "a" / "weights").read_text() == "w"
