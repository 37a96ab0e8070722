from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.api.device import DeviceProfile
from llmd.api.messages import Load, StageReport
from llmd.engine.composition import make_host
from llmd.engine.placement import prediction
from llmd.host.devices import DeviceState
from llmd.host.plugin_host import PluginHost
from llmd.server.telemetry import predictions
from llmd.server.telemetry.predictions import Predictions
from tests.daemon.engine.placement.tiny_candidates import QUICK
from tests.serving.model import write_model

STAGES = (StageReport("reference", "", 0, 0, 0, part_names=("embed", "0", "1", "head")),)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> PluginHost:
    return make_host(tmp_path_factory.mktemp("probes"))


def known(_device: DeviceState) -> DeviceProfile:
    return QUICK


def test_a_prediction_is_found_once(
    tmp_path: Path, host: PluginHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []

    def counted(*arguments: Any) -> prediction.Prediction | None:
        calls.append(arguments)
        return prediction.predict(*arguments)

    monkeypatch.setattr(predictions, "predict", counted)
    load = Load(str(write_model(tmp_path / "m")), device="reference")
    kept = Predictions(known)
    found = kept.of(host, load, STAGES)
    assert found is not None
    assert found.step_s > QUICK.step_s
    assert kept.of(host, load, STAGES) == found
    assert len(calls) == 1


def test_devices_may_be_measured_later(tmp_path: Path, host: PluginHost) -> None:
    rates: list[DeviceProfile] = []
    load = Load(str(write_model(tmp_path / "m")), device="reference")
    kept = Predictions(lambda _device: rates[0] if rates else None)
    assert kept.of(host, load, STAGES) is None
    rates.append(QUICK)
    assert kept.of(host, load, STAGES) is not None


def test_a_model_that_is_gone_is_not_predicted(tmp_path: Path, host: PluginHost) -> None:
    assert Predictions(known).of(host, Load(str(tmp_path / "gone")), STAGES) is None
