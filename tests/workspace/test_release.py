"""A release is refused unless it is consistent, and consists of exactly its files."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.packaging.made_wheels import make_wheel
from tools.release.artefacts import check_contents, compare, expected, read_contents, write_sums
from tools.release.c_library import pack_library
from tools.release.rules import ReleaseError, checked_version, common_version, has_entry, versions
from tools.release.targets import TARGETS, Target
from tools.wheelhouse import DISTRIBUTIONS

ROOT = Path(__file__).parents[2]
CHANGELOG = "# Changelog\n\n## [0.2.0] - 2026-01-31\n\n- Something.\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clean checkout in which everything has the version 0.2.0."""
    for name in DISTRIBUTIONS:
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (tmp_path / "bindings" / "c").mkdir(parents=True)
    (tmp_path / "bindings" / "c" / "Makefile").write_text("VERSION := 0.2.0\n")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=someone", "-c", "user.email=someone@example.org")
    subprocess.run(["git", *identity, *arguments], check=True, cwd=folder)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=All")


def test_every_file_of_the_workspace_states_the_same_version() -> None:
    assert common_version(versions(ROOT))


def test_a_clean_checkout_with_a_changelog_entry_may_be_released(checkout: Path) -> None:
    assert checked_version(checkout) == "0.2.0"


@pytest.mark.parametrize("name", ["CHANGELOG.md", "forgotten.py"])
def test_uncommitted_changes_are_refused(checkout: Path, name: str) -> None:
    (checkout / name).write_text(f"{CHANGELOG}\n- More.\n")
    with pytest.raises(ReleaseError, match=re.escape(name)):
        checked_version(checkout)


def test_different_versions_are_refused(checkout: Path) -> None:
    (checkout / "tui" / "pyproject.toml").write_text('[project]\nversion = "0.2.1"\n')
    commit(checkout)
    with pytest.raises(ReleaseError, match=r"0\.2\.1  tui/pyproject\.toml"):
        checked_version(checkout)


def test_a_version_without_changelog_entry_is_refused(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text(CHANGELOG.replace("[0.2.0] - 2026-01-31", "[Unreleased]"))
    commit(checkout)
    with pytest.raises(ReleaseError, match=r"no entry for 0\.2\.0"):
        checked_version(checkout)


@pytest.mark.parametrize("heading", ["## [0.2.0]", "## [0.2.0] - soon", "## [0X2.0] - 2026-01-31"])
def test_an_entry_has_its_version_and_a_date(heading: str) -> None:
    assert has_entry(CHANGELOG, "0.2.0")
    assert not has_entry(f"{heading}\n", "0.2.0")


def test_a_release_has_one_compiled_wheel_for_each_target() -> None:
    names = [pattern.replace("_2_*", "_2_34") for pattern in expected("0.2.0", TARGETS)]
    assert compare(names, expected("0.2.0", TARGETS)) == []
    assert "llmd_backend_cpu-0.2.0-cp312-abi3-manylinux_2_34_aarch64.whl" in names


def test_a_missing_or_unrepaired_wheel_is_reported() -> None:
    patterns = expected("0.2.0", [Target("3.11", "x86_64")])
    names = [pattern.replace("manylinux_2_*", "linux") for pattern in patterns]
    missing, stranger = compare(names, patterns)
    assert "manylinux_2_*_x86_64.whl: 0 files" in missing
    assert "linux_x86_64.whl: not part" in stranger


def test_packages_need_their_version_and_a_licence(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "one", "1.0", files={"one/LICENSE": "Do what you like."})
    check_contents(wheel, "1.0", "/tmp/build")
    with pytest.raises(ReleaseError, match=r"do not state version 2\.0"):
        check_contents(wheel, "2.0", "/tmp/build")
    with pytest.raises(ReleaseError, match="no LICENSE"):
        check_contents(make_wheel(tmp_path, "two", "1.0"), "1.0", "/tmp/build")


def test_packages_do_not_name_the_folder_of_the_build(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "one", files={"one/LICENSE": "", "one/ext.so": "/tmp/build/ext.cpp"})
    with pytest.raises(ReleaseError, match=r"one/ext\.so contains the path /tmp/build"):
        check_contents(wheel, "1.0", "/tmp/build")


def test_the_archive_of_the_library_has_the_same_bytes_again(tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    first, second = (pack_library(ROOT, "0.2.0", folder, 1_000_000_000) for folder in folders)
    assert first.read_bytes() == second.read_bytes()
    names = read_contents(first)
    assert {"libllmd-0.2.0/LICENSE", "libllmd-0.2.0/include/llmd.h", "libllmd-0.2.0/README.md"} <= set(names)


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs sha256sum")
def test_checksums_can_be_verified(tmp_path: Path) -> None:
    (tmp_path / "one.whl").write_text("one")
    write_sums(tmp_path)
    check = ["sha256sum", "--check", "SHA256SUMS"]
    assert subprocess.run(check, check=False, cwd=tmp_path, stdout=subprocess.DEVNULL).returncode == 0
    (tmp_path / "one.whl").write_text("two")
    assert subprocess.run(check, check=False, cwd=tmp_path, capture_output=True).returncode == 1
