from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmd.config.log_place import NO_LOG, LogPlace, _unit_of, log_place


def test_the_journal_is_the_stream_that_systemd_has_opened(tmp_path: Path) -> None:
    with (tmp_path / "stream").open("wb") as stream:
        found = os.fstat(stream.fileno())
        environ = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}
        assert log_place(environ, tmp_path / "log", stream.fileno()).kind == "journal"
        other = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino + 1}"}
        assert log_place(other, tmp_path / "log", stream.fileno()) == NO_LOG


def test_a_file_is_the_log_of_background_daemons_by_identity(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    with path.open("ab") as stream:
        assert log_place({}, path, stream.fileno()) == LogPlace("file", str(path))
        path.unlink()
        assert log_place({}, path, stream.fileno()) == NO_LOG
    assert log_place({"JOURNAL_STREAM": "1:2"}, path, 99999) == NO_LOG


@pytest.mark.parametrize(
    ("group", "unit", "is_user_unit"),
    [
        ("0::/system.slice/llmd.service", "llmd.service", False),
        (
            "0::/user.slice/user-1.slice/user@1.service/app.slice/llmd.service",
            "llmd.service",
            True,
        ),
        ("3:cpu:/\n1:name=systemd:/system.slice/llmd.service\n0::/", "llmd.service", False),
        ("0::/init.scope", "", False),
    ],
)
def test_the_unit_is_that_of_the_control_group(
    tmp_path: Path, *, group: str, unit: str, is_user_unit: bool
) -> None:
    (tmp_path / "cgroup").write_text(group)
    found = _unit_of(tmp_path / "cgroup")
    assert found == LogPlace("journal", unit=unit, is_user_unit=is_user_unit)
    assert _unit_of(tmp_path / "none").unit == ""
