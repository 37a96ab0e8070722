from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import LlmdError, NotFoundError
from llmd.cli.service.systemd_service import SystemdService, UnitState, _remove_if_empty
from llmd.cli.service.units import ServicePlan, service_unit
from llmd.config import TcpAddress
from tests.daemon.cli.service.conftest import Manager

PLAN = ServicePlan(("/opt/llmd",), (TcpAddress("127.0.0.1", 9),))


@pytest.fixture
def service(tmp_path: Path) -> SystemdService:
    return SystemdService.of_user({"XDG_CONFIG_HOME": str(tmp_path / "config")}, tmp_path)


def test_the_folder_is_that_of_the_user(tmp_path: Path) -> None:
    assert SystemdService.of_user({}, tmp_path).folder == tmp_path / ".config" / "systemd" / "user"
    assert SystemdService.of_system().folder == Path("/etc/systemd/system")


def test_installing_listens_and_starts_only_a_daemon_with_models(
    service: SystemdService, manager: Manager
) -> None:
    service.install(PLAN)
    assert manager.calls == ["systemctl --user daemon-reload", "systemctl --user enable --now llmd.socket"]
    assert (service.folder / "llmd.service").read_text() == service_unit(PLAN)
    with_model = ServicePlan(PLAN.command, PLAN.addresses, ("guide",))
    service.install(with_model)
    assert manager.calls == [
        "systemctl --user daemon-reload",
        "systemctl --user stop llmd.socket llmd.service",
        "systemctl --user disable llmd.service",
        "systemctl --user enable --now llmd.socket",
        "systemctl --user enable --now llmd.service",
    ]


def test_an_installation_that_fails_leaves_nothing(service: SystemdService, manager: Manager) -> None:
    manager.refuse("enable --now")
    with pytest.raises(LlmdError, match="Failed to do that"):
        service.install(PLAN)
    assert not service.is_installed
    assert not service.folder.parent.exists()


def test_the_error_of_an_installation_is_the_first_one(service: SystemdService, manager: Manager) -> None:
    manager.refuse("user")  # also what removes the files again
    with pytest.raises(LlmdError, match="daemon-reload") as refused:
        service.install(PLAN)
    assert refused.value.hint == "the end of `journalctl --user -u llmd.service -n 20` may say why"
    assert not service.folder.parent.exists()


def test_a_daemon_that_does_not_start_says_why(service: SystemdService, manager: Manager) -> None:
    plan = ServicePlan(PLAN.command, PLAN.addresses, ("guide",))
    manager.refuse("enable --now llmd.service", "Job for llmd.service failed.")
    manager.log("info began\nllmd: the model does not fit\n      name a smaller one\n")
    with pytest.raises(LlmdError, match="the daemon did not start: the model does not fit") as refused:
        service.install(plan)
    assert refused.value.hint == "name a smaller one"
    assert any(call.startswith("journalctl --user -u llmd.service ") for call in manager.calls)
    assert not service.is_installed

    manager.log("")
    with pytest.raises(LlmdError, match=r"Job for llmd\.service failed") as refused:
        service.install(plan)
    assert "journalctl --user -u llmd.service" in refused.value.hint


def test_a_user_without_a_session_of_systemd_is_told_so(service: SystemdService, manager: Manager) -> None:
    manager.refuse("daemon-reload", "Failed to connect to bus: No medium found")
    with pytest.raises(LlmdError, match="systemd has no session of your user") as refused:
        service.install(PLAN)
    assert "--system" in refused.value.hint


def test_uninstalling_removes_what_was_installed(service: SystemdService, manager: Manager) -> None:
    service.install(PLAN)
    assert manager.calls
    service.uninstall()
    assert manager.calls == [
        "systemctl --user disable --now llmd.socket llmd.service",
        "systemctl --user daemon-reload",
        "systemctl --user reset-failed llmd.service llmd.socket",
    ]
    assert not service.folder.parent.exists()
    with pytest.raises(NotFoundError, match="the service of your user is not installed"):
        service.uninstall()


def test_units_of_others_stay(service: SystemdService, manager: Manager) -> None:
    service.install(PLAN)
    other = service.folder / "other.service"
    other.symlink_to("/dev/null")  # a unit that is masked
    service.uninstall()
    assert manager.calls
    assert list(service.folder.iterdir()) == [other]


def test_files_go_even_where_systemd_refuses_and_the_error_is_told(
    service: SystemdService, manager: Manager
) -> None:
    service.install(PLAN)
    manager.refuse("disable")
    with pytest.raises(LlmdError, match="disable --now"):
        service.uninstall()
    assert not service.is_installed


def test_states_are_read_unit_by_unit(service: SystemdService, manager: Manager) -> None:
    manager.show(
        "Id=llmd.socket\nActiveState=active\nSubState=running\nUnitFileState=enabled\n\n"
        "MainPID=12\nNRestarts=2\nStatusText=serving a=b\nId=llmd.service\nActiveState=active\n"
        "SubState=running\nUnitFileState=disabled\n"
    )
    assert service.states() == [
        UnitState("llmd.socket", "active (running)", "enabled", None, 0, ""),
        UnitState("llmd.service", "active (running)", "disabled", 12, 2, "serving a=b"),
    ]


def test_folders_without_a_file_are_removed(tmp_path: Path) -> None:
    (tmp_path / "empty" / "deep" / "er").mkdir(parents=True)
    _remove_if_empty(tmp_path / "empty")
    assert not (tmp_path / "empty").exists()
    (tmp_path / "full" / "deep").mkdir(parents=True)
    (tmp_path / "full" / "deep" / "model").touch()
    _remove_if_empty(tmp_path / "full")
    assert (tmp_path / "full" / "deep" / "model").exists()
