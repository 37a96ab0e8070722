from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from llmd.api import DeviceError, DeviceOptions, NotFoundError
from llmd.api.messages import Load
from llmd.engine.composition import device_opener, loader_for, make_host
from llmd.host.names import DEVICE_TRIAL
from llmd.host.plugin_host import PluginHost
from llmd.remote.device import RemoteDevice
from llmd.testing import trial
from tests.plugin_sites import Site, site

__all__ = ["site"]

ISOLATED = """
from llmd.api import Backend, hookimpl
from msgspec import structs
LLMD_API = 2

@hookimpl
def llmd_backends():
    return [Backend(NAME, probe, open_device, isolated=True)]

def probe():
    from llmd.builtin.reference.device import probe
    return [structs.replace(one, name=NAME, kind=NAME) for one in probe()]

def open_device(name, options):
    from llmd.builtin.reference.device import ReferenceDevice
    device = ReferenceDevice()
    device.info = structs.replace(device.info, name=NAME, kind=NAME)
    return device
"""


def test_built_in_plugins_are_found_through_their_entry_points(tmp_path: Path) -> None:
    host = make_host(tmp_path)
    assert "reference" in host.backends()
    assert "LlamaForCausalLM" in host.architectures()


def test_devices_are_opened_by_name(tmp_path: Path) -> None:
    open_device = device_opener(make_host(tmp_path))
    assert open_device("reference").info.name == "reference"
    with pytest.raises(NotFoundError, match="nowhere"):
        open_device("nowhere")


def test_a_device_is_opened_with_its_own_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, DeviceOptions]] = []
    monkeypatch.setattr(
        PluginHost, "open_device", lambda _, device, options: opened.append((device.info.name, options))
    )
    own = {"reference": DeviceOptions(memory_bytes=9)}
    load = Load("", threads=3, device_options=own)
    device_opener(make_host(tmp_path), load.options_of)("reference")
    assert opened == [("reference", DeviceOptions(threads=3, memory_bytes=9))]


def test_architectures_are_imported_before_a_model_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Mock(return_value={})
    monkeypatch.setattr(PluginHost, "architectures", asked)
    loader_for(tmp_path)
    asked.assert_called_once_with()


def test_a_loader_knows_the_usable_devices_best_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_model = Mock()
    monkeypatch.setattr("llmd.engine.composition.load_model", load_model)
    monkeypatch.setattr("llmd.engine.placement.candidates.available_bytes", lambda: 1000)
    loader_for(tmp_path)(Load("anywhere"), lambda _: None)
    *_, devices = load_model.call_args.args
    usable = devices.usable()
    assert usable[0] == make_host(tmp_path).choose_device("auto")
    reference = next(device for device in usable if device.info.name == "reference")
    assert devices.room(reference) == 1000


def test_the_trial_is_the_function_that_it_names() -> None:
    module, function = DEVICE_TRIAL.split(":")
    assert module == trial.__name__
    assert callable(getattr(trial, function))


@pytest.mark.timeout(120)
def test_devices_of_a_second_isolated_backend_get_processes(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        site.write(name, ISOLATED.replace("NAME", repr(name)))
    host = make_host(tmp_path)
    open_device = device_opener(host)
    for name, kind in (("first", False), ("reference", False), ("second", True), ("first", False)):
        device = open_device(name)
        assert isinstance(device, RemoteDevice) == kind
        assert device.info.name == name
        device.close()
    monkeypatch.setattr(PluginHost, "transports", lambda _: {})
    with pytest.raises(DeviceError, match="needs a process of its own, and there is no transport") as caught:
        open_device("second")
    assert "llmd-transport" in caught.value.hint
