"""Opening a device in a process of its own, and what ends the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec import structs

from llmd.api import DeviceError, DeviceLostError, LinkError, NotFoundError, Transport
from llmd.api.device import DeviceOptions
from llmd.host.devices import DeviceState
from llmd.host.names import PluginName
from llmd.remote import opening
from llmd.remote.messages import Job
from llmd.remote.opening import open_apart
from llmd_transport.local import llmd_transports
from tests.daemon.remote.conftest import OpenApart
from tests.plugin_sites import Site, site
from tests.serving.apart import LOCAL, process_of

__all__ = ["site"]
PATIENCE_S = 20.0

FAILS = """
from llmd.api import Backend, DeviceError, hookimpl
LLMD_API = 2

@hookimpl
def llmd_backends():
    return [Backend("reference", tuple, fail)]

def fail(name, options):
    {body}
"""

ENGINE = """
import sys, time
from tests.daemon.remote.test_opening import reference_state
from tests.serving.apart import apart, process_of

device = apart(reference_state())
print(process_of(device), flush=True)
time.sleep(1000)
"""


def reference_state() -> DeviceState:
    from llmd.builtin.reference.device import probe
    from llmd.host.names import discover

    plugin = next(one for one in discover() if one.name == "reference")
    return DeviceState(probe()[0], "reference", plugin, ok=True)


def is_running(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(process_id: int) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while is_running(process_id) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_running(process_id)


def test_closing_the_device_ends_its_process(open_here: OpenApart) -> None:
    device = open_here()
    process_id = process_of(device)
    assert is_running(process_id)
    assert device.free_bytes() > 0
    device.close()
    assert not is_running(process_id)
    device.close()
    with pytest.raises(DeviceLostError, match="reference: it was closed"):
        device.read_rate(0.0)


@pytest.mark.parametrize("stopped", [False, True])
def test_the_death_of_the_engine_ends_the_process(*, stopped: bool) -> None:
    engine = subprocess.Popen([sys.executable, "-c", ENGINE], stdout=subprocess.PIPE, cwd=Path.cwd())
    assert engine.stdout
    try:
        process_id = int(engine.stdout.readline())
        if stopped:  # it would not see that its link is closed
            os.kill(process_id, signal.SIGSTOP)
        engine.kill()
        engine.wait()
        assert ends(process_id)
    finally:
        engine.kill()
        engine.wait()
        engine.stdout.close()


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        ("raise DeviceError('it is too hot')", DeviceError, "it is too hot"),
        ("raise KeyError('no card')", DeviceError, "KeyError: 'no card'"),
        ("import os; os._exit(3)", DeviceError, "could not be opened: .*its process ended with status 3"),
    ],
)
def test_a_device_that_cannot_be_opened_says_why(
    site: Site, reference: DeviceState, open_here: OpenApart, body: str, error: type[Exception], words: str
) -> None:
    plugin = site.write("failing", FAILS.format(body=body))
    with pytest.raises(error, match=words) as caught:
        open_here(structs.replace(reference, plugin=plugin))
    assert type(caught.value) is error, "no part of a model was on it"


def test_a_process_that_does_not_connect_is_an_error(
    reference: DeviceState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "START_LIMIT_S", 0.0)
    started: list[subprocess.Popen[bytes]] = []
    start = opening.start

    def noted(job: Job) -> subprocess.Popen[bytes]:
        started.append(start(job))
        return started[-1]

    monkeypatch.setattr(opening, "start", noted)
    (transport,) = llmd_transports()
    with pytest.raises(DeviceError, match="the process of device reference did not start"):
        open_apart(reference, DeviceOptions(), transport, LOCAL)
    assert started[0].poll() == -signal.SIGKILL


def test_no_link_is_an_error_of_the_device(reference: DeviceState) -> None:
    def refuse(address: str) -> None:
        raise LinkError(f"no links at {address}")

    transport = Transport("local", refuse, refuse)  # type: ignore[arg-type]
    with pytest.raises(DeviceError, match="no links at local://"):
        open_apart(reference, DeviceOptions(), transport, LOCAL)


def test_a_backend_that_does_not_know_the_device_says_so(
    reference: DeviceState, transport_plugin: PluginName, open_here: OpenApart
) -> None:
    assert transport_plugin.name == "local"
    info = structs.replace(reference.info, name="reference:7")
    with pytest.raises(NotFoundError, match="has no device 'reference:7'"):
        open_here(structs.replace(reference, info=info))
