"""The backend that authors of plugins copy passes the suite that it asks them to pass."""

from __future__ import annotations

from pathlib import Path

from llmd.engine.composition import device_opener, make_host
from llmd.testing.conformance import cases_for, check_device
from tests.plugin_sites import EXAMPLE, Site


def test_the_example_conforms(site: Site, tmp_path: Path) -> None:
    site.install_project(EXAMPLE)
    device = device_opener(make_host(tmp_path / "cache"))("example")
    assert [result for result in check_device(device) if result.problem] == []
    tried = {op.kind for case in cases_for(device.info) for op in case.ops}
    assert tried == set(device.info.ops)
