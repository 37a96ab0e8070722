"""Plugins that fail, and devices that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from llmd.api.device import DeviceInfo
from llmd.cli.composition import build_host
from llmd.cli.doctor.plugins import device_checks, plugin_checks
from llmd.host.devices import DeviceState
from llmd.host.names import PluginName
from llmd.host.states import PluginState
from tests.daemon.cli.doctor.patient import Patient
from tests.plugin_sites import Site

Llmd = Callable[..., Any]

PLUGIN = PluginName("made", "made", "made-made", "1.0")
SHAKY = """
from llmd.api import Parser, hookimpl
LLMD_API = 2
@hookimpl
def llmd_parsers():
    return [Parser("shaky", "calls", matches=lambda template: 0, load=print)]
"""
NO_DRIVER = """
from llmd.api import Backend, DeviceInfo, hookimpl
LLMD_API = 2
@hookimpl
def llmd_backends():
    return [Backend("card", probe=lambda: [INFO], open=print, driver="carddriver 3")]
INFO = DeviceInfo("card:0", "card", 0, 0, (), (), (), reason="no driver: /dev/card0 is missing")
"""


def device(name: str, *, score: int = 1, ok: bool = True, reason: str = "") -> DeviceState:
    info = DeviceInfo(name, "toy", score, 1, ("f32",), ("f32",), (), description="a toy")
    return DeviceState(info, "made", PLUGIN, ok=ok, reason=reason, fix="fix it" if reason else "")


@pytest.fixture
def ill(patient: Patient, site: Site) -> Patient:
    """A user with four plugins that fail, each in its own way, and one without its driver."""
    site.install("segfaults", "raises_on_import", "other_contract", "hangs")
    site.write("card", NO_DRIVER)
    path = f"{site.folder}:{patient.environment.get('PYTHONPATH', '')}"
    return Patient(patient.home, patient.environment | {"PYTHONPATH": path})


def test_each_broken_plugin_has_its_reason_and_is_gone_once_it_is_uninstalled(
    ill: Patient, site: Site
) -> None:
    checks = ill.examined("plugins")
    for name, reason in (
        ("plugin:raises", "importing trial_raises raised"),
        ("plugin:other", "is built for plugin contract 99, but this llmd has"),
        ("plugin:segfaults", "SIGSEGV"),
        ("plugin:hangs", "while it looked for devices of backend 'hangs'"),
    ):
        assert (checks[name]["status"], reason in checks[name]["seen"]) == ("fail", True), checks[name]
        assert checks[name]["fix"]
    assert "uninstall" in checks["plugin:raises"]["fix"]
    assert "install" in checks["plugin:other"]["fix"]
    for folder in site.folder.glob("*.dist-info"):  # what uninstalling does that matters here
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    assert [check for check in ill.examined("plugins").values() if check["status"] == "fail"] == []


def test_a_plugin_without_its_driver_says_so_itself(ill: Patient) -> None:
    found = ill.examined("plugins")["device:card:0"]
    assert (found["status"], found["seen"]) == ("warn", "no driver: /dev/card0 is missing")


def test_listing_afterwards_knows_what_the_doctor_saw(llmd: Llmd, site: Site) -> None:
    site.install("segfaults")
    llmd("doctor", "plugins")
    states = {
        plugin["name"]: plugin for plugin in json.loads(llmd("plugins", "list", "--json").out)["plugins"]
    }
    assert (states["segfaults"]["state"], states["segfaults"]["grain"]) == ("failed", "probe")
    assert (states["reference"]["state"], states["reference"]["phase"]) == ("ok", "probe")


def test_a_broken_plugin_fails_the_check_with_its_fix(llmd: Llmd, site: Site) -> None:
    site.install("segfaults", "raises_on_import")
    done = llmd("doctor", "plugins", "--json")
    assert done.code == 8
    checks = {check["id"]: check for check in json.loads(done.out)["checks"]}
    assert checks["plugin:segfaults"]["status"] == "fail"
    assert "SIGSEGV" in checks["plugin:segfaults"]["seen"]
    assert checks["plugin:raises"]["fix"]
    assert checks["plugin:reference"]["status"] == "ok"
    assert checks["device:reference"]["status"] == "ok"


def test_a_failed_plugin_is_a_failed_check() -> None:
    fine = PluginState("fine", "made-fine", "1.0", "fine", "probe", "ok")
    failed = PluginState("bad", "made-bad", "1.0", "bad", "probe", "failed", "it hung", "wake it")
    first, second = plugin_checks([fine, failed])
    assert (first.status, first.seen) == ("ok", "made-fine 1.0")
    assert (second.status, second.seen, second.fix) == ("fail", "made-bad 1.0: it hung", "wake it")


def test_a_device_that_computes_wrongly_fails_and_one_without_driver_warns() -> None:
    checks = {
        check.id: check
        for check in device_checks([
            device("good"),
            device("wrong", ok=False, reason="linear/f32: wrong"),
            device("absent", score=0, ok=False, reason="no driver"),
        ])
    }  # fmt: skip
    assert [checks[f"device:{name}"].status for name in ("good", "wrong", "absent")] == ["ok", "fail", "warn"]
    assert checks["devices"].seen == "good is the default"


def test_no_usable_device_is_a_failure() -> None:
    (check,) = device_checks([])
    assert (check.id, check.status) == ("devices", "fail")
    assert check.fix


def test_an_error_of_a_parser_in_use_is_known_to_the_doctor(llmd: Llmd, site: Site) -> None:
    site.write("shaky", SHAKY)
    build_host().note_failure("parser", "shaky", RuntimeError("it cannot read"))
    checks = {check["id"]: check for check in json.loads(llmd("doctor", "plugins", "--json").out)["checks"]}
    assert checks["plugin:shaky"]["status"] == "fail"
    assert "its parser shaky raised RuntimeError: it cannot read" in checks["plugin:shaky"]["seen"]
