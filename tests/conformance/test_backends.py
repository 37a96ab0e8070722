"""Every installed backend passes the conformance suite."""

from __future__ import annotations

import pytest

from llmd.api import Device, DeviceOptions
from llmd.builtin.reference import device as reference
from llmd.engine.composition import device_opener, make_host
from llmd.testing.conformance import cases_for, check_case, reference_outcome
from llmd_backend_cpu import device as cpu

INFOS = {"cpu": cpu.describe(), "reference": reference.describe()}
CLAIMED = {name: {case.name for case in cases_for(info)} for name, info in INFOS.items()}
CASES = {case.name: case for info in INFOS.values() for case in cases_for(info)}


@pytest.fixture(scope="module")
def devices(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Device]:
    host = make_host(tmp_path_factory.mktemp("probes"))
    return {name: device_opener(host, DeviceOptions())(name) for name in INFOS}


@pytest.mark.parametrize("case", CASES)
def test_devices_conform(devices: dict[str, Device], case: str) -> None:
    expected = reference_outcome(CASES[case])
    for name, device in devices.items():
        if case not in CLAIMED[name]:
            continue
        results = list(check_case(device, CASES[case], expected))
        assert [result for result in results if result.problem] == [], name
        assert len(results) > 1, "accuracy and exactness were both checked"
