from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmd.registry.packings import Packings

LIMIT = 100


@pytest.fixture
def packings(tmp_path: Path) -> Packings:
    return Packings(tmp_path / "cache")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    return tmp_path / "model"


def written(packings: Packings, model: Path, name: str, num_bytes: int, age_s: int = 0) -> Path:
    path = packings.open(model, name, num_bytes, LIMIT)
    assert path is not None
    path.write_bytes(bytes(num_bytes))
    os.utime(path, (path.stat().st_mtime - age_s,) * 2)
    return path


def test_a_file_is_found_again_by_what_it_depends_on(packings: Packings, model: Path, tmp_path: Path) -> None:
    path = written(packings, model, "a", 10)
    (tmp_path / "link").symlink_to(model)
    assert packings.open(tmp_path / "link", "a", 10, LIMIT) == path
    assert packings.open(model, "b", 10, LIMIT) != path


def test_only_its_user_may_look_into_its_folder(packings: Packings, model: Path) -> None:
    assert written(packings, model, "a", 1).parent.stat().st_mode & 0o777 == 0o700


def test_what_was_used_longest_ago_makes_room(packings: Packings, model: Path) -> None:
    first = written(packings, model, "first", 40, age_s=30)
    second = written(packings, model, "second", 40, age_s=20)
    assert packings.open(model, "first", 40, LIMIT) == first  # used now: it is the younger one
    third = packings.open(model, "third", 40, LIMIT)
    assert third is not None
    assert first.exists()
    assert not second.exists()


def test_a_file_that_is_used_stays_though_all_others_go(packings: Packings, model: Path) -> None:
    old = written(packings, model, "old", 60, age_s=60)
    young = written(packings, model, "young", 30)
    assert packings.open(model, "old", 60, 70) == old
    assert old.exists()
    assert not young.exists()


def test_weights_beyond_the_limit_are_not_kept(packings: Packings, model: Path) -> None:
    assert packings.open(model, "large", LIMIT + 1, LIMIT) is None
    assert packings.open(model, "none", 1, 0) is None


def test_a_cache_that_cannot_be_written_keeps_nothing(tmp_path: Path, model: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert Packings(tmp_path / "file").open(model, "a", 1, LIMIT) is None


def test_files_of_models_that_are_gone_are_swept(packings: Packings, model: Path, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    kept, gone = written(packings, model, "a", 1), written(packings, tmp_path / "gone", "a", 1)
    (tmp_path / "gone").rmdir()
    packings.sweep()
    assert kept.exists()
    assert not gone.parent.exists()
