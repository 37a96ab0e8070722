"""A path in a file is relative to the file's folder, wherever the daemon is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.config import Directories, load_settings
from llmd.config.path_settings import PATHS, absolute, missing_file
from llmd.config.setting_values import Origin, setting_fields


def test_they_are_settings() -> None:
    assert set(setting_fields()) >= PATHS


def test_a_path_in_a_file_is_relative_to_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directories: Directories
) -> None:
    file = tmp_path / "folder" / "mine.toml"
    file.parent.mkdir()
    file.write_text('[server]\ntls_cert = "llmd.pem"\ntls_key = "/keys/llmd.key"\n')
    monkeypatch.chdir(tmp_path)
    listen = load_settings(
        environ={}, directories=directories, file=Path("folder/mine.toml")
    ).config.server.listen
    assert listen.tls_cert == str(tmp_path / "folder" / "llmd.pem")
    assert listen.tls_key == "/keys/llmd.key"


def test_only_paths_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert absolute("client.ca_file", "~/ca.pem", Path("/elsewhere")) == str(tmp_path / "ca.pem")
    assert absolute("client.ca_file", 7, tmp_path) == 7
    assert absolute("client.host", "box", tmp_path) == "box"


def test_a_file_that_is_missing_is_named_with_its_line(tmp_path: Path) -> None:
    origin = Origin(str(tmp_path / "ca.pem"), "config.toml", 3)
    error = missing_file("client.ca_file", origin)
    assert error is not None
    assert (error.line, f"there is no file {tmp_path / 'ca.pem'}" in error.message) == (3, True)
    (tmp_path / "ca.pem").touch()
    assert missing_file("client.ca_file", origin) is None
    assert missing_file("client.ca_file", Origin(None, "default")) is None
