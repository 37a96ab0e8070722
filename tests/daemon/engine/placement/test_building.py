"""Stages of a small model on the reference and on null devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from llmd.api import Device
from llmd.api.features import KERNELS
from llmd.api.kernel_use import KernelUse
from llmd.api.machine import num_processors
from llmd.api.messages import Load, StageSpec
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.builtin.reference.device import ReferenceDevice
from llmd.builtin.reference.stage import ReferenceStage
from llmd.engine.core import EngineCore
from llmd.engine.loading import LoadedModel, load_model
from llmd.engine.steps.step_trace import Tracer
from llmd.engine.steps.threaded_stage import ThreadedStage
from llmd.testing.null_device import NullDevice
from tests.serving.cores import run, submit
from tests.serving.model import write_model

ARCHITECTURES = {name: one for one in llmd_architectures() for name in one.names}
SPLIT = (StageSpec("a", "0", "0"), StageSpec("b", "1", "1"))
Build = Callable[..., LoadedModel]


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Build]:
    """Return a function that loads the small model on devices by name; all is closed after the test."""
    directory = write_model(tmp_path)
    with ExitStack() as stack:

        def make(devices: dict[str, Device], **options: object) -> LoadedModel:
            message = Load(str(directory), slots=2, context_len=64, **options)  # type: ignore[arg-type]
            model = load_model(message, ARCHITECTURES, devices.__getitem__, lambda _: None)
            stack.callback(model.close)
            return model

        yield make


def reference(name: str = "auto", **fields: object) -> ReferenceDevice:
    device = ReferenceDevice()
    device.info = msgspec.structs.replace(device.info, name=name, **fields)
    return device


def null(name: str, **fields: object) -> NullDevice:
    device = NullDevice(lambda: 0.0, name=name)
    device.info = msgspec.structs.replace(device.info, **fields)
    return device


def core(model: LoadedModel) -> EngineCore:
    assert isinstance(model.runner, EngineCore)
    return model.runner


def test_more_threads_than_processors_are_allowed_and_said(build: Build) -> None:
    processors = num_processors()
    threaded = reference(uses_threads=True)
    (notice,) = build({"auto": threaded}, threads=processors + 1).loaded.notices
    assert notice.startswith(f"--threads {processors + 1}: more than the {processors} available")
    assert build({"auto": threaded}, threads=processors).loaded.notices == ()
    assert build({"auto": reference()}, threads=processors + 1).loaded.notices == ()


@pytest.mark.parametrize(
    ("devices", "depth", "micro_batches", "threaded"),
    [
        ({"a": reference("a"), "b": reference("b")}, 2, 2, [True, True]),
        ({"a": null("a"), "b": reference("b")}, 2, 2, [False, True]),
        ({"a": null("a"), "b": null("b")}, 2, 2, [False, False]),
        (dict.fromkeys("ab", reference("a")), 1, 1, [False, False]),
        (dict.fromkeys("ab", null("a")), 2, 1, [False, False]),
    ],
)
def test_stages_on_several_devices_work_at_the_same_time(
    build: Build, devices: dict[str, Device], depth: int, micro_batches: int, threaded: list[bool]
) -> None:
    built = core(build(devices, stages=SPLIT))
    assert (built._limits.depth, built._limits.micro_batches) == (depth, micro_batches)
    assert [isinstance(stage, ThreadedStage) for stage in built._pipeline._stages] == threaded


def test_a_report_names_parts_and_layers(build: Build) -> None:
    split = (
        StageSpec("a", "embed", "embed"),
        StageSpec("b", "0", "0.mixer"),
        StageSpec("a", "0.ffn", "head"),
    )
    stages = build({"a": reference("a"), "b": reference("b")}, stages=split).loaded.stages
    assert [(one.device, one.parts, one.first, one.last) for one in stages] == [
        ("a", "embed", 0, 0),
        ("b", "layer 0.mixer", 0, 1),
        ("a", "layers 0.ffn-1", 0, 2),
    ]


def test_the_device_of_the_last_stage_draws_if_it_can(build: Build) -> None:
    first, last = (NullDevice(lambda: 0.0, name=name, draws=True) for name in "ab")
    assert core(build({"a": null("a"), "b": last}, stages=SPLIT))._pipeline.draws
    assert not core(build({"a": first, "b": null("b")}, stages=SPLIT))._pipeline.draws


@pytest.mark.parametrize("other", [reference("b", features=()), null("b")])
def test_the_time_of_each_stage_of_a_divided_model_is_measured(build: Build, other: Device) -> None:
    """Devices that do not keep times themselves are timed by their threads."""
    divided = core(build({"a": reference("a", features=()), "b": other}, stages=SPLIT))
    run(divided, submit(1, 5, 4))
    report = divided.report()
    assert report.timed_steps == report.single_steps == 3
    first, second = report.stages_s
    assert 0 < first < report.single_s
    assert second >= 0


def test_a_model_on_one_device_has_no_times_of_stages(build: Build) -> None:
    whole = core(build({"auto": reference()}))
    run(whole, submit(1, 5, 4))
    assert (whole.report().timed_steps, whole.report().stages_s) == (0, ())


def test_a_report_has_the_kernels_of_each_stage_whose_device_says_them(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = KernelUse(("NumPy",))
    monkeypatch.setattr(ReferenceStage, "kernels", lambda _self: used, raising=False)
    named = reference("a", features=(KERNELS,))
    built = core(build({"a": named, "b": reference("b")}, stages=SPLIT))
    assert built.report().kernels == (used, KernelUse())


def test_only_stages_of_devices_that_can_keep_times_keep_them(tmp_path: Path) -> None:
    devices: dict[str, Device] = {"a": reference("a"), "b": null("b", features=())}
    load = Load(str(write_model(tmp_path)), slots=2, context_len=64, stages=SPLIT)
    tracer = Tracer()
    model = load_model(load, ARCHITECTURES, devices.__getitem__, lambda _: None, tracer=tracer)
    run(core(model), submit(1, 5, 2))
    model.close()
    for step in tracer.steps:
        first, second = step.stages
        assert {span.kind for span in first} == {"launch", "copy", "device"}
        assert second == ()
