"""Folders that cannot be written, and full disks."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from llmd.api.byte_size import format_bytes
from llmd.cli.doctor.check import Check
from llmd.cli.doctor.folders import WrittenFolder, folder_check
from tests.daemon.cli.doctor.patient import Patient, as_others_are, by_id, command_of

SMALL_DISK = ["unshare", "--map-root-user", "--mount"]


def written(path: Path) -> WrittenFolder:
    return WrittenFolder("made", path, "toys", 1 << 20)


def test_every_folder_that_llmd_writes_is_checked(patient: Patient) -> None:
    checks = patient.examined("folders")
    below = patient.home.folder
    paths = {name: check["seen"].rpartition(", ")[0] for name, check in checks.items()}
    assert paths == {
        "folder:models": str(below / "data" / "llmd" / "models"),
        "folder:cache": f"{patient.environment['XDG_CACHE_HOME']}/llmd",
        "folder:state": str(below / "state" / "llmd"),
        "folder:config": str(below / "config" / "llmd"),
        "folder:run": str(below / "llmd"),
        "folder:temporary": patient.environment.get("TMPDIR", "/tmp"),
    }
    assert all(check["seen"].endswith(" free") for check in checks.values())


def test_a_folder_that_its_owner_may_not_write(patient: Patient) -> None:
    patient.home.state.mkdir(parents=True)
    patient.home.state.chmod(0o500)
    found = patient.cured("folders", "folder:state", prepare=as_others_are)
    assert found["seen"] == f"{patient.home.state} cannot be written: Permission denied"


def test_a_file_in_place_of_a_folder(patient: Patient) -> None:
    patient.home.state.parent.mkdir(parents=True)
    patient.home.state.touch()
    assert "Not a directory" in patient.cured("folders", "folder:state")["seen"]


def test_a_full_disk(patient: Patient) -> None:
    """The disk is small, and the cache fills it."""
    disk = patient.home.folder / "disk"
    disk.mkdir()
    places = {"XDG_CACHE_HOME": str(disk / "cache"), "XDG_STATE_HOME": str(disk / "state")}
    script = f"""
        mount -t tmpfs -o size=20m none {disk} && mkdir -p {disk}/cache/llmd {disk}/state/llmd
        head -c 21m /dev/zero > {disk}/cache/llmd/weights 2> {disk.parent}/expected
        llmd doctor folders --json > {disk.parent}/before
        {{ eval "$(python3 -c 'import json, re, sys
checks = {{one["id"]: one for one in json.load(open(sys.argv[1]))["checks"]}}
print(re.findall("`(.*?)`", checks["folder:state"]["fix"])[0])' {disk.parent}/before)"; }}
        llmd doctor folders --json
    """
    done = subprocess.run(
        [*SMALL_DISK, "bash", "-c", script],
        env=patient.environment | places,
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr:
        pytest.skip("this system lets nobody mount a small disk")
    before = by_id((disk.parent / "before").read_text())["folder:state"]
    assert (before["status"], "No space left on device" in before["seen"]) == ("fail", True)
    assert command_of(before["fix"]) == f"rm -r {disk}/cache/llmd"
    assert by_id(done.stdout)["folder:state"]["status"] == "ok", done.stderr


def test_a_folder_that_will_be_made_is_not_made_here(tmp_path: Path) -> None:
    assert folder_check(written(tmp_path / "new" / "folder")).status == "ok"
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_fails_the_check(tmp_path: Path) -> None:
    def full(_folder: Path) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    check = folder_check(written(tmp_path), full)
    assert (check.status, check.seen) == ("fail", f"{tmp_path} cannot be written: No space left on device")
    assert check.fix == "free space on its disk: the folder holds toys"


@pytest.mark.parametrize(("free", "status"), [(1 << 20, "ok"), ((1 << 20) - 1, "warn"), (0, "warn")])
def test_a_disk_with_little_room_is_a_warning(tmp_path: Path, free: int, status: str) -> None:
    check = folder_check(written(tmp_path), lambda _folder: free)
    assert (check.status, bool(check.fix)) == (status, status == "warn")
    assert check.seen == f"{tmp_path}, {format_bytes(free)} free"


def test_a_cache_on_another_disk_frees_nothing(tmp_path: Path) -> None:
    elsewhere = Path("/proc")
    check = folder_check(written(tmp_path), lambda _folder: 0, cache=elsewhere)
    assert isinstance(check, Check)
    assert "rm -r" not in check.fix
