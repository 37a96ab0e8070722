"""Words for the kernels of each stage of a model."""

from __future__ import annotations

from msgspec import structs

from llmd.api.device import DeviceInfo
from llmd.api.kernel_use import KernelUse, SlowPath
from llmd.api.messages import StageReport
from llmd.api.reports import Report
from llmd.server.telemetry.device_facts import DeviceFacts
from llmd.server.telemetry.kernel_names import kernel_names

STAGES = [StageReport(name, "layers", 1, 1, 1) for name in ("cuda:0", "cpu")]
FACTS = DeviceFacts(infos={"cpu": DeviceInfo("cpu", "cpu", 1, 1, (), (), (), description="AVX2, 4 threads")})
BARE = Report(0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 128)


def test_the_description_of_a_device_comes_before_what_its_stage_says() -> None:
    use = KernelUse(("graphs up to 64 rows",), (SlowPath("launches kernels one by one", "lower --slots"),))
    report = structs.replace(BARE, kernels=(use, KernelUse()))
    assert kernel_names(STAGES, FACTS, report) == [
        ("graphs up to 64 rows", "launches kernels one by one"),
        ("AVX2, 4 threads",),
    ]


def test_without_a_report_of_the_same_stages_devices_are_all_that_is_known() -> None:
    of_another = structs.replace(BARE, kernels=(KernelUse(("graphs",)),))
    for report in (None, BARE, of_another):
        assert kernel_names(STAGES, FACTS, report) == [(), ("AVX2, 4 threads",)]
