"""What a daemon says of its models while they work."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llmd.api.device import DeviceProfile
from llmd.cli.doctor.check import Check
from llmd.cli.doctor.daemon import loaded_models
from llmd.cli.ps import warnings
from llmd.engine.composition import make_host
from llmd.host import benchmarks
from llmd.host.benchmarks import Benchmarks
from llmd.host.cache import Cache
from tests.daemon.engine.placement.tiny_candidates import QUICK, SLOW
from tests.plugin_sites import Site
from tests.serving.engine_state import asked
from tests.serving.http import complete, send
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon
from tests.serving.simulated_card import install_card

LONG = {"max_tokens": 1 << 14, "ignore_eos": True}


@contextlib.contextmanager
def tiny_daemon(root: Path, cache: Path | None = None, **flags: Any) -> Iterator[RunningDaemon]:
    directories = directories_below(root, cache=cache)
    write_model(directories.models / MODEL, context_len=1 << 15)
    with running_daemon(directories, **flags) as daemon:
        yield daemon


def said(daemon: RunningDaemon) -> dict[str, str]:
    """Return the verdicts of the only model, with their levels."""
    (row,) = send(daemon, "GET", "/llmd/ps").json["models"]
    return {verdict["text"]: verdict["level"] for verdict in row["verdicts"]}


def until_said(daemon: RunningDaemon, pattern: str) -> str:
    """Ask until a verdict matches, and return it; the test's time limit ends a wait that never does."""
    while True:
        for text in said(daemon):
            if re.fullmatch(pattern, text):
                return text


def test_an_idle_model_has_no_warnings_and_a_restarted_one_has_the_reason(
    tmp_path: Path, probes: Path
) -> None:
    with tiny_daemon(tmp_path, probes) as daemon:
        assert said(daemon) == {}
        (row,) = send(daemon, "GET", "/llmd/ps").json["models"]
        os.kill(row["engine_pid"], signal.SIGKILL)
        assert complete(daemon).status == 200
        text = "the engine was restarted 1 time: the last one ended with signal 9, SIGKILL"
        assert said(daemon) == {text: "warn"}


def test_requests_wait_for_slots_and_decode_is_compared_with_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks, "measure_now", lambda _device, _how: DeviceProfile(1e12, {}, {}))
    cache = tmp_path / "cache"
    device = make_host(cache).find_device("reference")
    Benchmarks(Cache(cache)).measure(device)
    with tiny_daemon(tmp_path, slots=1) as daemon, contextlib.ExitStack() as streams:
        for _ in range(3):
            streams.enter_context(asked(daemon, LONG))
        until_said(
            daemon, "2 requests wait for a slot: 1 sequence runs at once; a higher --slots allows more"
        )
        until_said(daemon, r"decode runs at 0\.\d\d of what the memory of reference allows")
        until_said(daemon, r"queue: the oldest request has waited \d s")


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated card is fast, all other devices are slow."""
    monkeypatch.setattr(
        Benchmarks, "known", lambda _self, device: QUICK if device.info.kind == "card" else SLOW
    )


def until_checked(daemon: RunningDaemon, pattern: str) -> Check:
    """Ask as `llmd doctor` does until a check of the model matches; `llmd ps` shows the same."""
    while True:
        for check in loaded_models(daemon.client()):
            if re.fullmatch(pattern, check.seen):
                assert (check.id, check.status) == (f"loaded:{MODEL}", "warn")
                assert f"warning: {MODEL}: {check.seen}; {check.fix}" in warnings(daemon.client().ps())
                return check


ON_BOTH: dict[str, Any] = {"device": "card:0,reference", "kv_memory": 1 << 20}


@pytest.mark.usefixtures("rates")
@pytest.mark.parametrize(
    ("memory_bytes", "pattern"),
    [
        (
            300_000,
            r"on the CPU \(reference\): card:0 would be faster, but the whole model takes .* 293.0 KiB",
        ),
        (
            2_000_000,
            r"spilled: .* \(reference\) not on card:0, because the whole model takes .* it has 1.9 MiB",
        ),
    ],
)
def test_a_card_that_is_too_small_is_the_reason_in_ps_and_doctor(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch, memory_bytes: int, pattern: str
) -> None:
    install_card(site, monkeypatch, memory_bytes=memory_bytes)
    with tiny_daemon(tmp_path, **ON_BOTH) as daemon:
        assert until_checked(daemon, pattern).fix.startswith(f"`llmd plan {MODEL}` shows what fits")


@pytest.mark.usefixtures("rates")
def test_a_card_that_is_slow_and_takes_more_memory_than_planned(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_card(site, monkeypatch, step_s=0.05, leak_bytes=200 << 20)
    with tiny_daemon(tmp_path, **ON_BOTH) as daemon:
        complete(daemon, max_tokens=20, ignore_eos=True)
        slow = until_checked(
            daemon, r"throttled: a step of one sequence took .* were predicted for card:0: .*"
        )
        assert f"`llmd plan {MODEL} --verify`" in slow.fix
        until_checked(daemon, r"memory: the load took 20\d\.\d MiB of card:0, \d\.\d MiB were planned")


@pytest.mark.usefixtures("rates")
def test_memory_that_the_driver_of_a_card_has_spilled(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_card(site, monkeypatch, spilled_bytes=3 << 20)
    with tiny_daemon(tmp_path, **ON_BOTH) as daemon:
        until_checked(daemon, r"spilled: the driver keeps 3.0 MiB of card:0 in main memory, .*")


def test_a_broken_backend_is_why_a_model_runs_on_another(tmp_path: Path, site: Site) -> None:
    site.install("segfaults")
    with tiny_daemon(tmp_path, device="auto") as daemon:
        text = until_said(daemon, "runs on .*, because segfaults cannot be used: .*")
        assert said(daemon)[text] == "warn"
        assert "SIGSEGV" in text
