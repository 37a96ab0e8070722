"""The child tests every device and checks every result."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from llmd.api.device import Device, DeviceInfo, DeviceOptions
from llmd.api.errors import PluginError
from llmd.api.plugins import Backend
from llmd.host.child import answers_to, checked_infos, tried
from llmd.host.jobs import Began, Described, Failed, Finished, Found, Job, Measure, Measured, Probe
from llmd.host.names import SHORT_PROFILE, PluginName
from llmd.host.states import Summary
from tests.plugin_sites import Site

TASK = Probe(PluginName("made", "made", "made-made", "1.0"), "")
INFO = DeviceInfo("toy:0", "toy", 1, 1 << 30, ("f32",), ("f32",), ("embed",))
UNUSABLE = DeviceInfo("toy:1", "toy", 0, 0, (), (), (), reason="its driver is too old")


class Toy:
    """A device that remembers whether it was closed."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def backend(opener: Callable[[str, DeviceOptions], Any]) -> Backend:
    return Backend("toy", lambda: [INFO], opener)


def test_probes_a_real_backend_from_outside(site: Site, example: Any) -> None:
    (plugin,) = site.install_project(example)
    answers = list(answers_to(Probe(plugin, "llmd.testing.trial:try_device")))
    (described,) = (answer for answer in answers if isinstance(answer, Described))
    assert described.summary == Summary({"backend": ("example",)})
    assert described.import_s > 0
    (device,) = (answer.device for answer in answers if isinstance(answer, Found))
    assert (device.info.name, device.ok, device.reason) == ("example", True, "")
    assert isinstance(answers[-1], Finished)


def test_measures_a_real_backend_from_outside(site: Site, example: Any) -> None:
    (plugin,) = site.install_project(example)
    answers = list(answers_to(Measure(plugin, "example", "example", SHORT_PROFILE, 0.01)))
    (profile,) = (answer.profile for answer in answers if isinstance(answer, Measured))
    assert profile.read_bytes_per_s > 0


def test_a_hanging_child_ends_by_itself_when_nobody_is_left_to_end_it(site: Site) -> None:
    plugin = site.write("made", "while True: pass\n")
    job = msgspec.msgpack.encode(Job(Probe(plugin, ""), tuple(sys.path), (), alarm_s=0.5))
    done = subprocess.run(
        [sys.executable, "-m", "llmd.host.child"], input=job, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGALRM


def test_a_child_ends_by_itself_after_the_limit_of_its_step_alone(site: Site) -> None:
    (plugin,) = site.install("twin_one")
    source = site.folder / "trial_twin_one.py"
    source.write_text(
        source.read_text().replace("    return []", "    import time; time.sleep(5); return []")
    )
    job = msgspec.msgpack.encode(Job(Probe(plugin, ""), tuple(sys.path), (), alarm_s=4.0))
    done = subprocess.run(
        [sys.executable, "-m", "llmd.host.child"], input=job, capture_output=True, check=False
    )
    assert done.returncode == 0


def test_a_plugin_that_cannot_be_described_fails_with_its_fix(site: Site) -> None:
    (plugin,) = site.install("raises_on_import")
    began, failed = answers_to(Probe(plugin, ""))
    assert began == Began("was imported")
    assert isinstance(failed, Failed)
    assert "the toolkit was built for another driver" in failed.reason
    assert failed.fix


@pytest.mark.parametrize("returned", [None, 7, [7], [{"name": "toy"}], [("toy",)]])
def test_a_probe_that_returns_something_else_is_refused(returned: object) -> None:
    with pytest.raises(PluginError, match="did not return DeviceInfos"):
        checked_infos("toy", returned)


def test_a_device_info_with_a_wrong_field_is_refused() -> None:
    wrong = DeviceInfo("toy", "toy", "high", 1, ("f32",), ("f32",), ())  # type: ignore[arg-type]
    with pytest.raises(PluginError, match=r"Expected `int`, got `str`"):
        checked_infos("toy", [wrong])


def test_a_device_that_passes_its_trial_is_ok_and_closed() -> None:
    toy = Toy()
    state = tried(TASK, backend(lambda *_: toy), INFO, lambda _: [])
    assert (state.ok, state.reason, toy.closed) == (True, "", True)


def test_a_device_that_fails_its_trial_says_where() -> None:
    toy = Toy()
    state = tried(TASK, backend(lambda *_: toy), INFO, lambda _: ["linear/f32: wrong", "attention: wrong"])
    assert (state.ok, state.reason, toy.closed) == (False, "linear/f32: wrong; attention: wrong", True)
    assert state.fix


def test_a_device_that_cannot_be_opened_does_not_take_the_others_with_it() -> None:
    def refuse(name: str, _options: DeviceOptions) -> Device:
        raise OSError(f"{name} is in use")

    state = tried(TASK, backend(refuse), INFO, None)
    assert not state.ok
    assert "OSError: toy:0 is in use" in state.reason


def test_a_device_that_says_it_is_unusable_is_not_opened() -> None:
    opened: list[str] = []
    state = tried(TASK, backend(lambda name, _options: opened.append(name)), UNUSABLE, None)
    assert (state.ok, state.reason, opened) == (False, "its driver is too old", [])
