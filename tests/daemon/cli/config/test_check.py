"""`llmd config check` prints every error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Llmd = Callable[..., Any]


def test_every_error_of_a_file_is_printed_with_its_line(llmd: Llmd, tmp_path: Path) -> None:
    file = tmp_path / "new.toml"
    file.write_text("[engine]\nslot = 3\nslots = 0\nquant = = q8\n[server]\naddr = 'a:b'\n")
    done = llmd("config", "check", str(file))
    assert done.code == 8
    assert [line for line in (2, 3, 4, 6) if f"{file}:{line}" in done.out] == [2, 3, 4, 6]
    assert "the nearest name is engine.slots" in done.out
    errors = json.loads(llmd("config", "check", str(file), "--json").out)["errors"]
    assert [error["line"] for error in errors] == [2, 3, 4, 6]
    assert llmd("config", "check", str(tmp_path / "none")).code == 2


def test_a_format_that_no_backend_has_is_an_error_with_the_nearest_names(llmd: Llmd, file: Path) -> None:
    assert llmd("config", "set", "quant", "q5").code == 2
    assert not file.exists()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[engine]\nquant = "q5"\n')
    for refused in (llmd("config", "check").out, llmd("serve", "guide").err):
        assert f"engine.quant from {file}:2 is 'q5', expected one of" in refused
        assert "the nearest are q8, q4, q3, q2" in refused


def test_without_a_file_everything_that_llmd_reads_is_checked(
    llmd: Llmd, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert llmd("config", "check").code == 0
    llmd("config", "set", "slots", "3")
    assert llmd("config", "check").out.startswith(f"no errors in {file}")
    file.write_text("[engine]\nslots = 0\n")
    monkeypatch.setenv("LLMD_MAX_CTX", "x")
    monkeypatch.setenv("LLMD_SLOT", "3")
    done = llmd("config", "check")
    assert done.code == 8
    for word in (f"{file}:2", "engine.max_ctx from LLMD_MAX_CTX", "LLMD_SLOT is not a setting"):
        assert word in done.out


def test_a_file_that_does_not_exist_is_named(llmd: Llmd, file: Path, tmp_path: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[client]\nca_file = "ca.pem"\n')
    for arguments in ((), (str(file),)):
        done = llmd("config", "check", *arguments)
        assert done.code == 8
        assert f"client.ca_file from {file}:2: there is no file {file.parent / 'ca.pem'}" in done.out
    (file.parent / "ca.pem").touch()
    assert llmd("config", "check").code == 0
