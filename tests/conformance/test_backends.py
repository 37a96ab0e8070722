"""Every installed backend passes the conformance suite."""

from __future__ import annotations

import pytest

from llmd.api import Device, DeviceOptions
from llmd.builtin.reference import device as reference
from llmd.engine.composition import device_opener, make_host
from llmd.testing.conformance import all_cases, cases_for, check_device
from llmd_backend_cpu import device as cpu

CASES = {case.name: case for case in all_cases()}
INFOS = {"cpu": cpu.describe(), "reference": reference.describe()}
CHOSEN = [(device, case.name) for device, info in INFOS.items() for case in cases_for(info)]


@pytest.fixture(scope="module")
def devices(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Device]:
    host = make_host(tmp_path_factory.mktemp("probes"))
    return {name: device_opener(host, DeviceOptions())(name) for name in INFOS}


@pytest.mark.parametrize(("device", "case"), CHOSEN)
def test_device_conforms(devices: dict[str, Device], device: str, case: str) -> None:
    results = list(check_device(devices[device], (CASES[case],)))
    assert [result for result in results if result.problem] == []
    assert len(results) > 1, "accuracy and exactness were both checked"
