from __future__ import annotations

import plistlib
import socket
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.cli.service.install import agent, check_reachable, kept_variables
from llmd.cli.service.launcher import launcher
from tests.daemon.cli.conftest import Llmd
from tests.daemon.cli.service.conftest import Manager


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


def test_print_shows_the_files_and_changes_nothing(
    llmd: Llmd, manager: Manager, tmp_path: Path, runtime: Path
) -> None:
    done = llmd("service", "install", "--print", "--model", "guide")
    assert done.code == 0
    assert f"# {tmp_path}/config/systemd/user/llmd.socket\n" in done.out
    assert f"ListenStream={runtime}/llmd/llmd.sock\n" in done.out
    assert f"ExecStart={launcher()[0]} -v serve -- guide\n" in done.out
    assert "Type=notify-reload\n" in done.out
    assert manager.calls == ["systemctl --version"]
    assert not (tmp_path / "config").exists()


def test_addresses_and_limits_are_those_of_the_settings(
    llmd: Llmd, manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LLMD_ADDR")
    config = tmp_path / "mine.toml"
    config.write_text('[server]\naddr = ["127.0.0.1:7"]\ndrain_s = 5\n')
    printed = llmd("service", "install", "--print", "--config", str(config)).out
    assert "ListenStream=127.0.0.1:7\n" in printed
    assert "TimeoutStopSec=15\n" in printed
    assert f"serve --config {config} --exit-idle-s 1800\n" in printed
    system = llmd("service", "install", "--print", "--system").out
    assert "ListenStream=/run/llmd/llmd.sock\n" in system
    assert "# /etc/sysusers.d/llmd.conf\n" in system


def test_installing_says_where_llmd_listens(llmd: Llmd, manager: Manager, tmp_path: Path) -> None:
    done = llmd("service", "install")
    assert done.code == 0
    assert f" llmd.service in {tmp_path}/config/systemd/user; llmd listens on unix:" in done.out
    assert "loginctl enable-linger" in done.err
    assert "systemctl --user enable --now llmd.socket" in manager.calls


def test_addresses_that_are_taken_are_a_conflict(
    llmd: Llmd, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("LLMD_ADDR", f"127.0.0.1:{taken.getsockname()[1]}")
        done = llmd("service", "install")
    assert done.code == 9
    assert "a program already listens at 127.0.0.1:" in done.err
    assert manager.calls == ["systemctl --version"]


def test_a_model_that_does_not_exist_is_named_before_anything_is_installed(
    llmd: Llmd, manager: Manager, tmp_path: Path
) -> None:
    done = llmd("service", "install", "--model", "guide", "--model", "nobody")
    assert done.code == 3
    assert done.err.startswith("llmd: there is no model 'nobody'; the nearest names are ")
    assert "`llmd list` shows every model" in done.err
    assert manager.calls == ["systemctl --version"]
    assert not (tmp_path / "config").exists()
    assert llmd("service", "install", "--model", "guide").code == 0


def test_a_model_below_the_working_folder_is_named_by_its_path(
    llmd: Llmd, manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    printed = llmd("service", "install", "--print", "--model", "models/mine").out
    assert f" serve -- {tmp_path}/models/mine\n" in printed


def test_without_systemd_the_error_says_what_to_do(llmd: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = llmd("service", "install")
    assert "systemctl is not installed" in done.err
    assert "start `llmd serve` with the service manager of this machine" in done.err


def test_where_systemd_does_not_run_nothing_is_written_and_the_error_says_what_to_do(
    llmd: Llmd, manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmd.cli.service.system_command.BOOTED", tmp_path / "none")
    for arguments in ([], ["--system"]):
        done = llmd("service", "install", *arguments)
        assert done.code == 2
        assert "systemd is not running on this machine" in done.err
        assert "`llmd serve --detach`" in done.err
    assert llmd("service", "install", "--print").code == 0
    assert not (tmp_path / "config").exists()


def test_a_program_that_other_users_cannot_reach_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    program = closed / "llmd"
    program.touch()
    with pytest.raises(ConfigError, match=f"the service needs {program}, but other users may not enter"):
        check_reachable(str(program))


def test_a_program_in_a_folder_of_which_the_service_has_its_own_is_named() -> None:
    with pytest.raises(ConfigError, match="the service needs /tmp/llmd, but it has a /tmp of its own"):
        check_reachable("/tmp/llmd")


def test_the_agent_runs_this_installation_and_logs_to_the_file_that_rotates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    read = plistlib.loads(agent(("guide",), None).content())
    assert read["ProgramArguments"] == [*launcher(), "-v", "serve", "--", "guide"]
    assert read["StandardErrorPath"] == f"{tmp_path}/llmd/daemon.log"


def test_on_macos_the_agent_is_written_and_started(
    llmd: Llmd, manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert llmd("service", "install").code == 0
    path = tmp_path / "Library" / "LaunchAgents" / "llmd.plist"
    assert plistlib.loads(path.read_bytes())["Label"] == "llmd"
    missing = llmd("service", "install", "--model", "nobody")
    assert (missing.code, "there is no model 'nobody'" in missing.err) == (3, True)
    assert any(f"bootstrap gui/0 {path}" in call or "bootstrap gui/" in call for call in manager.calls)
    assert "no service of the system" in llmd("service", "install", "--system").err


def test_variables_that_say_where_files_are_reach_the_service() -> None:
    assert kept_variables({"HF_HOME": "/m", "HF_TOKEN": "secret", "XDG_DATA_HOME": ""}) == {"HF_HOME": "/m"}
