from __future__ import annotations

import sys
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from llmd.cli.service.launcher import launcher, unreachable_program


def installed(folder: Path, record: str) -> PathDistribution:
    metadata = folder / "lib" / "python3" / "site-packages" / "llmd_daemon-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: llmd-daemon\nVersion: 1\n")
    (metadata / "RECORD").write_text(record)
    return PathDistribution(metadata)


def script(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("place", ["bin", "local/bin"])
def test_the_script_is_where_the_installer_has_put_it(tmp_path: Path, place: str) -> None:
    path = script(tmp_path / place / "llmd")
    record = f"llmd/__init__.py,,\nllmd/llmd.py,,\n../../../{place}/llmd,,\n"
    assert launcher(installed(tmp_path, record)) == (str(path),)


def test_a_link_is_not_followed_since_its_place_names_the_environment(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "llmd").symlink_to(script(tmp_path / "elsewhere" / "llmd"))
    assert launcher(installed(tmp_path, "../../../bin/llmd,,\n")) == (str(tmp_path / "bin" / "llmd"),)


def test_without_a_script_the_interpreter_runs_the_module(tmp_path: Path) -> None:
    assert launcher(installed(tmp_path, "../../../bin/llmd,,\n")) == (
        sys.executable,
        "-m",
        "llmd.cli.main",
    )


def test_this_environment_has_its_script() -> None:
    assert Path(launcher()[0]).parent == Path(sys.executable).parent


def test_a_program_in_a_folder_that_others_may_not_enter_is_named_with_the_folder(tmp_path: Path) -> None:
    assert unreachable_program(("/usr/bin/env",)) is None
    path = script(tmp_path / "private" / "bin" / "llmd")
    (tmp_path / "private").chmod(0o700)
    found = unreachable_program(("/usr/bin/env", str(path)))
    assert found is not None
    assert found[0] == path
    folder = Path(found[1].removeprefix("other users may not enter "))
    assert folder in path.parents  # a folder above that of the test may be private, too
    assert not folder.stat().st_mode & 0o001


@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp"])
def test_a_program_in_a_temporary_folder_is_named_with_the_folder(folder: str) -> None:
    program = f"{folder}/llmd"  # need not exist
    assert unreachable_program((program,)) == (Path(program), f"it has a {folder} of its own")
