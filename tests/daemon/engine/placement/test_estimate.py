from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from llmd.api.errors import ModelError
from llmd.api.messages import Load
from llmd.engine.composition import make_host
from llmd.engine.placement.estimate import estimate
from llmd.host.plugin_host import PluginHost
from tests.daemon.engine.placement.tiny_candidates import QUICK, SLOW, candidates
from tests.serving.machine import machine_of
from tests.serving.memory_needs import memory_needs


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> PluginHost:
    return make_host(tmp_path_factory.mktemp("probes"))


def test_the_chosen_device_has_the_needs(load: Load, host: PluginHost) -> None:
    infos = [one.info for one in candidates(SLOW, QUICK)]
    found = estimate(load, host.architectures(), machine_of(infos, {"d0": SLOW, "d1": QUICK}))
    assert found.load == structs.replace(load, device="d1")
    assert list(found.needs) == ["m1"]
    assert found.needs["m1"].devices == ("d1",)
    assert found.needs == memory_needs(found.load, host, lambda _name: infos[1])


def test_quantisation_that_is_a_default_stays_with_the_load(load: Load, host: PluginHost) -> None:
    infos = [one.info for one in candidates(QUICK)]
    asked = structs.replace(load, quant="q8", quant_is_default=True)
    found = estimate(asked, host.architectures(), machine_of(infos))
    assert found.load == structs.replace(asked, device="d0")
    assert (
        found.needs["m0"].weight_bytes
        < estimate(load, host.architectures(), machine_of(infos)).needs["m0"].weight_bytes
    )


def test_a_broken_model_has_no_estimate(tmp_path: Path, host: PluginHost) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError):
        estimate(Load(str(tmp_path)), host.architectures(), machine_of([]))
