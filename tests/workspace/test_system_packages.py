"""Setup reports missing system packages, and stops only if a required one is missing."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tools import system_packages
from tools.system_packages import SystemPackage, Use, apt_command, check_python, explain, main, needed

COMPILER = SystemPackage("g++", is_present=False, purpose="compiling")
EMULATOR = SystemPackage("qemu-user", is_present=False, purpose="emulating", is_required=False)
CLANG = SystemPackage("clang-19", is_present=False, purpose="warning", is_required=False)


class Machine:
    """A machine that lacks some packages, with or without the means to install them with apt."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *lacking: SystemPackage, apt: list[str] | None
    ) -> None:
        self.lacking = list(lacking)
        self.installed: list[str] = []
        monkeypatch.setattr(system_packages, "needed", self.needed)
        monkeypatch.setattr(system_packages, "apt_command", lambda: apt)
        monkeypatch.setattr(system_packages, "install", self.install)

    def needed(self, use: Use) -> list[SystemPackage]:
        return [*self.lacking, CLANG] if use == Use.EXHAUSTIVE else self.lacking

    def install(self, _apt: list[str], packages: list[SystemPackage]) -> None:
        self.lacking = []
        self.installed = [package.name for package in packages]


def exit_status() -> object:
    """Return the exit status of the installation of system packages."""
    with pytest.raises(SystemExit) as ended:
        main(Use.TEST)
    return ended.value.code


def test_message_names_every_missing_package_and_the_command() -> None:
    message = explain([COMPILER, EMULATOR])
    assert "sudo apt-get install g++ qemu-user" in message
    assert "needed for compiling" in message
    assert "optional, for emulating" in message


def test_packages_are_those_of_the_python_that_runs() -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert {f"python{version}-venv", f"python{version}-dev"} <= {package.name for package in needed(Use.RUN)}


def test_running_needs_less_than_testing() -> None:
    running, testing, everything = (
        [package.name for package in needed(use)] for use in (Use.RUN, Use.TEST, Use.EXHAUSTIVE)
    )
    assert all(package.is_required for package in needed(Use.RUN))
    assert "curl" not in running
    assert "curl" in testing
    assert "valgrind" not in testing
    assert set(running) < set(testing) < set(everything)


def test_an_old_python_is_refused_before_anything_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine(monkeypatch, COMPILER, apt=["apt-get"])
    monkeypatch.setattr(sys, "version_info", (3, 10, 13, "final", 0))
    message = str(exit_status())
    assert "Python 3.11 or newer" in message
    assert "is 3.10.13" in message
    assert "make PYTHON=python3.11 setup" in message


def test_python_may_be_new() -> None:
    check_python((3, 11, 0))
    check_python((3, 13, 1))


def test_missing_compiler_ends_set_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Machine(monkeypatch, COMPILER, apt=None)
    assert exit_status() == 1
    assert "g++" in capsys.readouterr().err


def test_missing_emulator_is_told_and_set_up_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Machine(monkeypatch, EMULATOR, apt=None)
    assert exit_status() == 0
    assert "qemu-user" in capsys.readouterr().err


def test_missing_packages_are_installed_where_apt_may_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Machine(monkeypatch, COMPILER, EMULATOR, apt=["apt-get"])
    assert exit_status() == 0
    assert capsys.readouterr().err == ""


def test_an_optional_package_is_asked_for_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(system_packages, "SAMPLES", tmp_path / "samples")
    Machine(monkeypatch, EMULATOR, apt=["apt-get"])
    assert exit_status() == 0
    assert capsys.readouterr().err == ""
    (tmp_path / "samples").mkdir()
    Machine(monkeypatch, EMULATOR, apt=["apt-get"])
    assert exit_status() == 0
    assert "qemu-user" in capsys.readouterr().err


def test_exhaustive_tests_ask_for_their_packages_in_a_workspace_that_is_set_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(system_packages, "SAMPLES", tmp_path)
    machine = Machine(monkeypatch, apt=["apt-get"])
    assert exit_status() == 0
    assert machine.installed == []
    with pytest.raises(SystemExit):
        main(Use.EXHAUSTIVE)
    assert machine.installed == ["clang-19"]


def test_root_needs_no_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert apt_command() == ["apt-get"]
