"""A device that computes for ever in the middle of streams: every request ends as if nothing had happened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.test_engine_killed import read_all
from tests.plugin_sites import Site
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

PLANTED = "PLANTED_LOOP"
DEVICE = """
import os
from pathlib import Path

import msgspec

from llmd.api import Backend, hookimpl
from llmd.builtin.reference.device import ReferenceDevice, describe

LLMD_API = 2


class Device(ReferenceDevice):
    def __init__(self):
        self.info = described()

    def load(self, *arguments):
        weights = super().load(*arguments)
        make_stage = weights.stage
        weights.stage = lambda *arguments: Stage(make_stage(*arguments))
        return weights


class Stage:
    def __init__(self, whole):
        self._whole = whole

    def __getattr__(self, name):
        return getattr(self._whole, name)

    def submit(self, *arguments):
        planted = Path(os.environ["PLANTED_LOOP"])
        if planted.exists():
            left = int(planted.read_text())
            planted.write_text(str(left - 1)) if left else planted.unlink()
            left or compute_for_ever()
        return self._whole.submit(*arguments)


def compute_for_ever():
    while True:
        pass


def described():
    return msgspec.structs.replace(describe(), name="loops")


@hookimpl
def llmd_backends():
    return [Backend("loops", probe=lambda: [described()], open=lambda name, options: Device())]
"""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Once this file has a number, one step never ends, after that many others. Then it is removed."""
    path = tmp_path / "planted"
    monkeypatch.setenv(PLANTED, str(path))
    return path


@pytest.fixture
def daemon(
    tmp_path: Path, probes: Path, site: Site, planted: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunningDaemon]:
    site.write("loops", DEVICE)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site.folder), os.environ.get("PYTHONPATH", "")]))
    directories = directories_below(tmp_path, probes)
    write_model(directories.models / MODEL)
    # With small steps, the limit of a long one is short.
    with running_daemon(directories, device="loops", engine_timeout_s=1.0, prefill_chunk=16) as running:
        yield running


@pytest.mark.timeout(90)  # a second of processor time is the least that shows a loop: long on a busy machine
def test_an_engine_in_an_endless_loop_is_replaced_and_streams_go_on(
    daemon: RunningDaemon, planted: Path, caplog: pytest.LogCaptureFixture
) -> None:
    planted.write_text("1")  # the result of the first step has told how long steps take
    disturbed = read_all(daemon, lambda: None, streams=2)
    assert not planted.exists()
    assert read_all(daemon, lambda: None, streams=2) == disturbed
    (row,) = daemon.client().ps()
    assert row["restarts"] == 1
    (died,) = (record for record in caplog.records if record.message == "engine_died")
    assert "it made no progress for " in vars(died)["how"]
    assert any(" in compute_for_ever" in line for line in vars(died)["last_lines"])
