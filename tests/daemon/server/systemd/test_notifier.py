from __future__ import annotations

import time
import uuid
from pathlib import Path

import pytest

from llmd.server.systemd.notifier import Notifier
from tests.serving.service_manager import notifications


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_messages_arrive_at_a_path_and_at_an_abstract_name(tmp_path: Path, kind: str) -> None:
    address = str(tmp_path / "notify") if kind == "path" else f"@llmd-{uuid.uuid4()}"
    with notifications(address) as received:
        notifier = Notifier(address)
        notifier.ready()
        notifier.stopping()
        notifier.need_time(1.5)
        notifier.ping()
        assert received.waiting() == [
            {"READY": "1"},
            {"STOPPING": "1"},
            {"EXTEND_TIMEOUT_USEC": "1500000"},
            {"WATCHDOG": "1"},
        ]


def test_a_reload_has_the_time_of_the_monotonic_clock(tmp_path: Path) -> None:
    with notifications(str(tmp_path / "notify")) as received:
        before = time.monotonic_ns() // 1000
        Notifier(received.address).reloading()
        message = received.next()
    assert message["RELOADING"] == "1"
    assert before <= int(message["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000


def test_a_status_is_sent_when_it_changes(tmp_path: Path) -> None:
    with notifications(str(tmp_path / "notify")) as received:
        notifier = Notifier(received.address)
        for status in ("loading", "loading", "serving"):
            notifier.status(status)
        assert received.waiting() == [{"STATUS": "loading"}, {"STATUS": "serving"}]


def test_nobody_who_listens_is_no_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    silent = Notifier()
    silent.ready()
    assert not silent.is_heard
    assert not caplog.records
    Notifier(str(tmp_path / "gone")).ready()
    assert [record.message for record in caplog.records] == ["service_manager_not_notified"]
