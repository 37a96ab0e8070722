"""`llmd keys add`, and how a running daemon reacts."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.config.keys import KeyFile, find_key
from tests.serving.http import send
from tests.serving.running import directories_below, running_daemon

Llmd = Callable[..., Any]


def test_prints_the_key_once_and_keeps_its_digest(llmd: Llmd, tmp_path: Path) -> None:
    done = llmd("keys", "add", "laptop")
    assert (done.code, done.err) == (0, "")
    key = done.out.strip()
    assert key.startswith("llmd-")
    assert key not in (tmp_path / "config" / "llmd" / "keys.json").read_text()
    shown = json.loads(llmd("keys", "add", "other", "--json").out)
    assert shown["name"] == "other"
    assert shown["key"] != key


def test_names_that_are_taken_end_it_with_nine(llmd: Llmd) -> None:
    llmd("keys", "add", "laptop")
    again = llmd("keys", "add", "laptop")
    assert (again.code, again.out) == (9, "")
    assert "llmd keys rm laptop" in again.err


OWN = "my-own-key-0123456789-abcdef"


def test_takes_the_key_of_a_file_or_of_standard_input(
    llmd: Llmd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text(f"{OWN}\n")
    done = llmd("keys", "add", "laptop", "--key-file", str(tmp_path / "key"))
    assert (done.code, done.out, done.err) == (0, "", "")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{OWN}-2\r\n".encode())))
    done = llmd("keys", "add", "boss", "--manage", "--json", "--key-file", "-")
    assert json.loads(done.out) == {"schema": 1, "name": "boss"}
    file = KeyFile(tmp_path / "config" / "llmd" / "keys.json")
    assert OWN not in file.path.read_text()
    found = [find_key(file.load(), secret) for secret in (OWN, f"{OWN}-2")]
    assert [(key.name, key.manages) for key in found if key] == [("laptop", False), ("boss", True)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no key"),
        (b"\n", "has 0 characters"),
        (f"{OWN}\n{OWN}\n".encode(), "holds several lines"),
        (b"short\n", "has 5 characters"),
        (OWN.encode() + b"\xff", "not ASCII"),
        (b"0123456789" * 100, "more than 512 characters"),
    ],
)
def test_files_that_hold_no_strong_key_are_refused_without_showing_it(
    llmd: Llmd, tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "key").write_bytes(content)
    done = llmd("keys", "add", "laptop", "--key-file", str(tmp_path / "key"))
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert "0123456789" not in done.err
    assert not (tmp_path / "config" / "llmd" / "keys.json").exists()


def test_file_that_cannot_be_read_is_named(llmd: Llmd, tmp_path: Path) -> None:
    done = llmd("keys", "add", "laptop", "--key-file", str(tmp_path / "missing"))
    assert done.code == 2
    assert f"{tmp_path / 'missing'} cannot be read" in done.err


def test_running_daemon_takes_keys_at_once(
    llmd: Llmd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = directories_below(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("LLMD_HOST", f"unix:{directories.user_socket}")
    (tmp_path / "llmd").symlink_to(directories.config)
    directories.config.mkdir()
    with running_daemon(directories, models=(), require_key=True) as daemon:
        assert send(daemon, "GET", "/v1/models").status == 401
        key = {"Authorization": f"Bearer {llmd('keys', 'add', 'laptop').out.strip()}"}
        assert send(daemon, "GET", "/v1/models", headers=key).status == 200
        assert send(daemon, "GET", "/llmd/ps", headers=key).status == 403
        manages = {"Authorization": f"Bearer {llmd('keys', 'add', 'boss', '--manage').out.strip()}"}
        assert send(daemon, "GET", "/llmd/ps", headers=manages).status == 200
        (tmp_path / "key").write_text(OWN)
        assert llmd("keys", "add", "own", "--key-file", str(tmp_path / "key")).code == 0
        assert send(daemon, "GET", "/v1/models", headers={"x-api-key": OWN}).status == 200
        assert llmd("keys", "rm", "laptop").code == 0
        assert send(daemon, "GET", "/v1/models", headers=key).status == 401
        monkeypatch.setenv("LLMD_HOST", str(daemon.tcp))
        refused = llmd("ps")
        assert (refused.code, "set LLMD_API_KEY" in refused.err) == (4, True)
        monkeypatch.setenv("LLMD_API_KEY", manages["Authorization"].removeprefix("Bearer "))
        assert llmd("ps").code == 0
