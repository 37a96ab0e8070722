from __future__ import annotations

from pathlib import Path

from llmd.api.device import DeviceProfile
from llmd.engine.composition import make_host
from llmd.host.devices import DeviceState
from llmd.server.telemetry.device_facts import DeviceFacts
from tests.plugin_sites import Site


def measured(device: DeviceState) -> DeviceProfile | None:
    return DeviceProfile(5e9, {}, {}) if device.info.name == "cpu" else None


def test_devices_have_their_measured_rate_or_the_reason_why_they_are_not_used(
    tmp_path: Path, site: Site
) -> None:
    site.install("segfaults")
    facts = DeviceFacts.of(make_host(tmp_path), measured)
    assert facts.read_bytes_per_s == {"cpu": 5e9}
    assert "SIGSEGV" in facts.unusable["segfaults"]
    assert "cpu" in facts.uses_threads
    assert facts.kv_bytes_per_s == {"cpu": 0.0}
    assert facts.infos["reference"].kind == "reference"
    assert "segfaults" not in facts.infos
