from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmd.api.errors import NotFoundError, NotPermittedError
from llmd.cli.service.scope import check_may_change, installed_service, named_service
from llmd.cli.service.systemd_service import SystemdService


def test_the_users_own_service_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    service = named_service(is_system=False)
    assert not service.is_installed
    service.folder.mkdir(parents=True)
    (service.folder / "llmd.service").touch()
    assert installed_service(is_system=False) == service


def test_a_service_that_is_not_installed_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("llmd.cli.service.systemd_service.SYSTEM_UNITS", tmp_path / "system")
    with pytest.raises(NotFoundError, match="not installed"):
        installed_service(is_system=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="other users cannot become root")
def test_only_root_may_change_the_system() -> None:
    code = os.fork()
    if code == 0:  # a child that is nobody
        os.setuid(65534)
        try:
            check_may_change(SystemdService.of_system())
        except NotPermittedError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(code, 0)[1]) == 7
    check_may_change(SystemdService.of_system())
