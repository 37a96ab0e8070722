from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from llmd.api.messages import Load, StageReport
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.engine.placement.model_problem import ModelOnDevices
from llmd.engine.placement.prediction import predicted_seconds
from llmd.models.open_model import OpenModel
from tests.daemon.engine.placement.tiny_candidates import QUICK, SLOW, candidates

ARCHITECTURES = {name: one for one in llmd_architectures() for name in one.names}
DEVICES = {one.info.name: one for one in candidates(QUICK, SLOW)}


def stage(device: str, *names: str, streamed_bytes: int = 0) -> StageReport:
    return StageReport(device, "", 0, 0, 0, part_names=names, streamed_bytes=streamed_bytes)


WHOLE = (stage("d0", "embed", "0", "1", "head"),)
HALVES = (stage("d0", "embed", "0"), stage("d1", "1", "head"))


def test_a_stage_takes_its_parts_and_the_fixed_time_of_a_step(load: Load, model: OpenModel) -> None:
    (whole,) = predicted_seconds(load, ARCHITECTURES, WHOLE, DEVICES)
    first, second = predicted_seconds(load, ARCHITECTURES, HALVES, DEVICES)
    assert QUICK.step_s < first < whole
    assert second > SLOW.step_s
    on_devices = ModelOnDevices(load, model, list(DEVICES.values()))
    assert on_devices.token_seconds(on_devices.stages((0,) * 6)) == pytest.approx([whole])
    assert on_devices.token_seconds(on_devices.stages((0, 0, 0, 1, 1, 1))) == pytest.approx([first, second])


def test_two_stages_on_one_device_have_a_time_each(load: Load) -> None:
    split = (stage("d0", "embed", "0"), stage("d0", "1", "head"))
    (whole,) = predicted_seconds(load, ARCHITECTURES, WHOLE, DEVICES)
    first, second = predicted_seconds(load, ARCHITECTURES, split, DEVICES)
    assert first + second == pytest.approx(whole + QUICK.step_s)


def test_quantised_weights_are_read_faster(load: Load) -> None:
    (plain,) = predicted_seconds(load, ARCHITECTURES, WHOLE, DEVICES)
    (quantised,) = predicted_seconds(structs.replace(load, quant="q8"), ARCHITECTURES, WHOLE, DEVICES)
    assert quantised < plain


def test_what_is_not_measured_or_streamed_is_not_predicted(tmp_path: Path) -> None:
    load = Load(str(tmp_path))  # no model: nothing is read
    assert predicted_seconds(load, ARCHITECTURES, WHOLE, {}) == ()
    assert predicted_seconds(load, ARCHITECTURES, HALVES, {"d0": DEVICES["d0"]}) == ()
    assert predicted_seconds(load, ARCHITECTURES, (), DEVICES) == ()
    assert predicted_seconds(load, ARCHITECTURES, (stage("d0", "0", streamed_bytes=1),), DEVICES) == ()
