"""`llmd doctor` checks everything afresh and suggests fixes."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.api.byte_size import format_bytes
from llmd.api.device import DeviceInfo
from llmd.cli.doctor import (
    Check,
    WrittenFolder,
    device_checks,
    folder_check,
    plugin_checks,
    pulls_check,
    settings_check,
)
from llmd.host.devices import DeviceState
from llmd.host.names import PluginName
from llmd.host.states import PluginState
from llmd.registry.pulled_models import PulledModels
from tests.plugin_sites import Site

Llmd = Callable[..., Any]

PLUGIN = PluginName("made", "made", "made-made", "1.0")


def device(name: str, *, score: int = 1, ok: bool = True, reason: str = "") -> DeviceState:
    info = DeviceInfo(name, "toy", score, 1, ("f32",), ("f32",), (), description="a toy")
    return DeviceState(info, "made", PLUGIN, ok=ok, reason=reason, fix="fix it" if reason else "")


def written(path: Path) -> WrittenFolder:
    return WrittenFolder("made", path, "toys", 1 << 20)


def test_a_broken_plugin_fails_the_check_with_its_fix(llmd: Llmd, site: Site) -> None:
    site.install("segfaults", "raises_on_import")
    done = llmd("doctor", "--json")
    assert done.code == 8
    checks = {check["id"]: check for check in json.loads(done.out)["checks"]}
    assert checks["plugin:segfaults"]["status"] == "fail"
    assert "SIGSEGV" in checks["plugin:segfaults"]["seen"]
    assert checks["plugin:raises"]["fix"]
    assert checks["plugin:reference"]["status"] == "ok"
    assert checks["device:reference"]["status"] == "ok"
    assert set(checks["python"]) == {"id", "status", "seen", "fix", "mend"}


def test_listing_afterwards_knows_what_the_doctor_saw(llmd: Llmd, site: Site) -> None:
    site.install("segfaults")
    llmd("doctor")
    states = {
        plugin["name"]: plugin for plugin in json.loads(llmd("plugins", "list", "--json").out)["plugins"]
    }
    assert (states["segfaults"]["state"], states["segfaults"]["grain"]) == ("failed", "probe")
    assert (states["reference"]["state"], states["reference"]["phase"]) == ("ok", "probe")


def test_symbols_stand_beside_the_words(llmd: Llmd) -> None:
    assert "✓ ok" in llmd("doctor").out


def test_every_folder_that_llmd_writes_is_checked(llmd: Llmd, tmp_path: Path) -> None:
    checks = {check["id"]: check for check in json.loads(llmd("doctor", "--json").out)["checks"]}
    seen = {name: checks[f"folder:{name}"]["seen"] for name in ("models", "cache", "state", "config")}
    paths = {name: text.rpartition(", ")[0] for name, text in seen.items()}
    assert paths == {
        "models": str(tmp_path / "data" / "llmd" / "models"),
        "cache": str(tmp_path / "cache" / "llmd"),
        "state": str(tmp_path / "state" / "llmd"),
        "config": str(tmp_path / "config" / "llmd"),
    }
    assert all(text.endswith(" free") for text in seen.values())
    assert {"folder:run", "folder:temporary"} <= checks.keys()


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check = folder_check(written(tmp_path / "file"))
    assert check == Check(
        "folder:made",
        "warn",
        f"{tmp_path / 'file'} cannot be written: Not a directory",
        f"make {tmp_path / 'file'} writable: it holds toys",
    )


def test_a_folder_that_will_be_made_is_not_made_here(tmp_path: Path) -> None:
    assert folder_check(written(tmp_path / "new" / "folder")).status == "ok"
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_fails_the_check(tmp_path: Path) -> None:
    def full(_folder: Path) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    check = folder_check(written(tmp_path), full)
    assert (check.status, check.seen) == ("fail", f"{tmp_path} cannot be written: No space left on device")
    assert check.fix == "free space on its disk: the folder holds toys"


@pytest.mark.parametrize(("free", "status"), [(1 << 20, "ok"), ((1 << 20) - 1, "warn"), (0, "warn")])
def test_a_disk_with_little_room_is_a_warning(tmp_path: Path, free: int, status: str) -> None:
    check = folder_check(written(tmp_path), lambda _folder: free)
    assert (check.status, bool(check.fix)) == (status, status == "warn")
    assert check.seen == f"{tmp_path}, {format_bytes(free)} free"


def test_a_setting_that_ends_every_command_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert (settings_check().status, settings_check().seen) == ("ok", "all are defaults")
    monkeypatch.setenv("LLMD_SLOTS", "4")
    assert settings_check().seen == "from LLMD_SLOTS"
    monkeypatch.setenv("LLMD_SLOTS", "many")
    check = settings_check()
    assert check.status == "fail"
    assert "LLMD_SLOTS" in check.seen


def test_variables_that_are_no_settings_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("LLMD_SLOT", "4")
    check = settings_check()
    assert (check.status, check.fix) == ("warn", "the nearest name is LLMD_SLOTS")
    assert check.seen.endswith(": LLMD_SLOT")


def test_settings_of_models_that_there_are_not_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for kind in ("CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path))
    file = tmp_path / "llmd" / "config.toml"
    file.parent.mkdir()
    file.write_text("[models.guide]\nslots = 2\n")
    assert (settings_check().status, settings_check().seen) == ("ok", f"from {file}")
    file.write_text("[models.guide]\nslots = 2\n[models.gide]\nslots = 3\n")
    check = settings_check()
    assert (check.status, check.seen.partition(": ")[2]) == ("warn", "gide")


def test_what_unfinished_pulls_take_is_told(tmp_path: Path) -> None:
    assert pulls_check(tmp_path).status == "ok"
    partial = PulledModels(tmp_path).blobs.partial
    partial.mkdir(parents=True)
    for name in ("one", "two", "two.lock"):
        (partial / name).write_bytes(bytes(1024))
    check = pulls_check(tmp_path)
    assert (check.status, check.seen) == ("warn", "2 files of unfinished pulls take 2.0 KiB")
    assert "pull the model again" in check.fix


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
