from __future__ import annotations

import pytest

from llmd.config.service_manager import PassedSocket, ServiceManager, take_service_manager

PID = 77


def test_sockets_names_and_watchdog_are_read_and_removed() -> None:
    environ = {
        "LISTEN_PID": "77",
        "LISTEN_FDS": "2",
        "LISTEN_FDNAMES": "local:https",
        "NOTIFY_SOCKET": "@abstract",
        "WATCHDOG_PID": "77",
        "WATCHDOG_USEC": "3000000",
        "HOME": "/home/ann",
    }
    sockets = (PassedSocket(3, "local"), PassedSocket(4, "https"))
    assert take_service_manager(environ, PID) == ServiceManager(sockets, "@abstract", 3.0)
    assert environ == {"HOME": "/home/ann"}


def test_what_is_for_another_process_is_ignored_and_removed() -> None:
    environ = {"LISTEN_PID": "1", "LISTEN_FDS": "1", "WATCHDOG_PID": "1", "WATCHDOG_USEC": "5"}
    assert take_service_manager(environ, PID) == ServiceManager()
    assert environ == {}


@pytest.mark.parametrize("names", ["", "one", "one:two:three"])
def test_sockets_without_a_name_each_have_none(names: str) -> None:
    environ = {"LISTEN_PID": "77", "LISTEN_FDS": "2", "LISTEN_FDNAMES": names}
    found = take_service_manager(environ, PID).sockets
    assert found == (PassedSocket(3, ""), PassedSocket(4, ""))


def test_without_a_service_manager_there_is_nothing() -> None:
    assert take_service_manager({}, PID) == ServiceManager()
    assert take_service_manager({"LISTEN_PID": "77", "LISTEN_FDS": "x"}, PID) == ServiceManager()
    assert take_service_manager({"WATCHDOG_USEC": "0"}, PID).watchdog_s is None
