from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from llmd.api.messages import Load, StageReport
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.engine.placement.model_problem import ModelOnDevices
from llmd.engine.placement.prediction import WholeModel, predict
from llmd.models.open_model import OpenModel
from tests.daemon.engine.placement.tiny_candidates import QUICK, SLOW, candidates

ARCHITECTURES = {name: one for one in llmd_architectures() for name in one.names}
DEVICES = {one.info.name: one for one in candidates(QUICK, SLOW)}


def stage(device: str, *names: str, streamed_bytes: int = 0, absent_bytes: int = 0) -> StageReport:
    built = StageReport(device, "", 0, 0, 0, part_names=names)
    return structs.replace(built, streamed_bytes=streamed_bytes, absent_bytes=absent_bytes)


def predicted_seconds(load: Load, stages: tuple[StageReport, ...]) -> tuple[float, ...]:
    found = predict(load, ARCHITECTURES, stages, DEVICES)
    assert found is not None
    return found.stages_s


WHOLE = (stage("d0", "embed", "0", "1", "head"),)
HALVES = (stage("d0", "embed", "0"), stage("d1", "1", "head"))


def test_a_stage_takes_its_parts_and_the_fixed_time_of_a_step(load: Load, model: OpenModel) -> None:
    (whole,) = predicted_seconds(load, WHOLE)
    first, second = predicted_seconds(load, HALVES)
    assert QUICK.step_s < first < whole
    assert second > SLOW.step_s
    on_devices = ModelOnDevices(load, model, list(DEVICES.values()))
    assert on_devices.token_seconds(on_devices.stages((0,) * 6)) == pytest.approx([whole])
    assert on_devices.token_seconds(on_devices.stages((0, 0, 0, 1, 1, 1))) == pytest.approx([first, second])


def test_two_stages_on_one_device_have_a_time_each(load: Load) -> None:
    split = (stage("d0", "embed", "0"), stage("d0", "1", "head"))
    (whole,) = predicted_seconds(load, WHOLE)
    first, second = predicted_seconds(load, split)
    assert first + second == pytest.approx(whole + QUICK.step_s)


def test_quantised_weights_are_read_faster(load: Load) -> None:
    (plain,) = predicted_seconds(load, WHOLE)
    (quantised,) = predicted_seconds(structs.replace(load, quant="q8"), WHOLE)
    assert quantised < plain


def test_the_whole_model_on_each_device_that_can_run_it(load: Load, model: OpenModel) -> None:
    unable = structs.replace(DEVICES["d1"], info=structs.replace(DEVICES["d1"].info, name="d2", ops=()))
    found = predict(load, ARCHITECTURES, HALVES, DEVICES | {"d2": unable})
    assert found is not None
    assert found.alone.keys() == {"d0", "d1"}
    assert found.alone["d0"].step_s < found.step_s < found.alone["d1"].step_s
    on_devices = ModelOnDevices(load, model, list(DEVICES.values()))
    assert found.alone["d0"] == WholeModel(
        on_devices.token_seconds(on_devices.stages((0,) * 6))[0], sum(on_devices.sizes(0, 0, 6).values())
    )


def test_what_is_not_measured_or_streamed_is_not_predicted(tmp_path: Path) -> None:
    load = Load(str(tmp_path))  # no model: nothing is read
    assert predict(load, ARCHITECTURES, WHOLE, {}) is None
    assert predict(load, ARCHITECTURES, HALVES, {"d0": DEVICES["d0"]}) is None
    assert predict(load, ARCHITECTURES, (), DEVICES) is None
    assert predict(load, ARCHITECTURES, (stage("d0", "0", streamed_bytes=1),), DEVICES) is None
    assert predict(load, ARCHITECTURES, (stage("d0", "0", absent_bytes=1),), DEVICES) is None
