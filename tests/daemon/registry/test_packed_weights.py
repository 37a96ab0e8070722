from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmd.registry.packed_weights import PackedWeightFiles

LIMIT = 100


@pytest.fixture
def packed_files(tmp_path: Path) -> PackedWeightFiles:
    return PackedWeightFiles(tmp_path / "cache")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    return tmp_path / "model"


def written(packed_files: PackedWeightFiles, model: Path, name: str, num_bytes: int, age_s: int = 0) -> Path:
    path = packed_files.open(model, name, num_bytes, LIMIT)
    assert path is not None
    path.write_bytes(bytes(num_bytes))
    os.utime(path, (path.stat().st_mtime - age_s,) * 2)
    return path


def test_a_file_is_found_again_by_what_it_depends_on(
    packed_files: PackedWeightFiles, model: Path, tmp_path: Path
) -> None:
    path = written(packed_files, model, "a", 10)
    (tmp_path / "link").symlink_to(model)
    assert packed_files.open(tmp_path / "link", "a", 10, LIMIT) == path
    assert packed_files.open(model, "b", 10, LIMIT) != path


def test_only_its_user_may_look_into_its_folder(packed_files: PackedWeightFiles, model: Path) -> None:
    assert written(packed_files, model, "a", 1).parent.stat().st_mode & 0o777 == 0o700


def test_what_was_used_longest_ago_makes_room(packed_files: PackedWeightFiles, model: Path) -> None:
    first = written(packed_files, model, "first", 40, age_s=30)
    second = written(packed_files, model, "second", 40, age_s=20)
    assert packed_files.open(model, "first", 40, LIMIT) == first  # just used: now the more recent one
    third = packed_files.open(model, "third", 40, LIMIT)
    assert third is not None
    assert first.exists()
    assert not second.exists()


def test_a_file_that_is_used_stays_though_all_others_go(packed_files: PackedWeightFiles, model: Path) -> None:
    old = written(packed_files, model, "old", 60, age_s=60)
    young = written(packed_files, model, "young", 30)
    assert packed_files.open(model, "old", 60, 70) == old
    assert old.exists()
    assert not young.exists()


def test_weights_beyond_the_limit_are_not_kept(packed_files: PackedWeightFiles, model: Path) -> None:
    assert packed_files.open(model, "large", LIMIT + 1, LIMIT) is None
    assert packed_files.open(model, "none", 1, 0) is None


def test_a_cache_that_cannot_be_written_keeps_nothing(tmp_path: Path, model: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert PackedWeightFiles(tmp_path / "file").open(model, "a", 1, LIMIT) is None


def test_files_of_models_that_are_gone_are_swept(
    packed_files: PackedWeightFiles, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "gone").mkdir()
    kept, gone = written(packed_files, model, "a", 1), written(packed_files, tmp_path / "gone", "a", 1)
    (tmp_path / "gone").rmdir()
    packed_files.sweep()
    assert kept.exists()
    assert not gone.parent.exists()
