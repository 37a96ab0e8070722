from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.device import HOST_MEMORY, DeviceInfo, DeviceProfile
from llmd.api.messages import StageReport
from llmd.engine.composition import make_host
from llmd.host import benchmarks
from llmd.host.benchmarks import Benchmarks
from llmd.host.cache import Cache
from llmd.host.devices import DeviceState
from llmd.host.names import PluginName
from llmd.server.dialects.native.devices import memory_rows
from tests.daemon.engine.placement.tiny_candidates import QUICK
from tests.plugin_sites import Site
from tests.serving.http import chat, send
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

PROFILE = DeviceProfile(2e10, {"f32": 1e10}, {"f32": {16: 1e11, 512: 3e11}})


def test_devices_are_listed_with_their_states(daemon: RunningDaemon) -> None:
    reply = send(daemon, "GET", "/llmd/devices").json
    row = next(row for row in reply["devices"] if row["name"] == "reference")
    assert (row["ok"], row["memory_id"]) == (True, HOST_MEMORY)
    assert (row["read_bytes_per_s"], row["decode_bytes_per_s"], row["prefill_flops_per_s"]) == (
        None,
        {},
        None,
    )


def test_devices_have_their_measured_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks, "measure_now", lambda _device, _how: PROFILE)
    cache = tmp_path / "cache"
    benchmarks.Benchmarks(Cache(cache)).measure(make_host(cache).find_device("reference"))
    with running_daemon(directories_below(tmp_path), models=()) as daemon:
        devices = {row["name"]: row for row in send(daemon, "GET", "/llmd/devices").json["devices"]}
    row = devices["reference"]
    assert (row["read_bytes_per_s"], row["decode_bytes_per_s"], row["prefill_flops_per_s"]) == (
        2e10,
        {"f32": 1e10},
        3e11,
    )


def test_a_backend_whose_probe_failed_is_listed_with_its_reason(tmp_path: Path, site: Site) -> None:
    site.install("segfaults")
    with running_daemon(directories_below(tmp_path), models=()) as daemon:
        devices = {row["name"]: row for row in send(daemon, "GET", "/llmd/devices").json["devices"]}
    assert (devices["segfaults"]["ok"], devices["segfaults"]["memory_bytes"]) == (False, None)
    assert "SIGSEGV" in devices["segfaults"]["reason"]


def test_the_memory_of_the_machine_is_divided_among_its_uses(daemon: RunningDaemon) -> None:
    chat(daemon)
    reply = send(daemon, "GET", "/llmd/devices").json
    (host,) = [row for row in reply["memories"] if row["memory_id"] == HOST_MEMORY]
    assert "reference" in host["devices"]
    assert host["weight_bytes"] > 0
    assert host["kv_bytes"] > 0
    assert 0 < host["free_bytes"] < host["total_bytes"]
    assert host["other_bytes"] < host["total_bytes"]


def device(name: str, memory_id: str, num_bytes: int) -> DeviceState:
    info = DeviceInfo(name, name, 1, num_bytes, (), (), (), memory_id=memory_id)
    return DeviceState(info, name, PluginName(name, name, "1", name), ok=True)


def test_what_others_use_of_a_card_is_not_known() -> None:
    states = [device("a", "card", 1000), device("b", "card", 900)]
    stages = [StageReport("a", "layers 0-3", 100, 10, 2, memory_id="card")] * 2
    (card,) = memory_rows(states, stages)
    assert card == {
        "memory_id": "card",
        "devices": ["a", "b"],
        "total_bytes": 1000,
        "free_bytes": None,
        "weight_bytes": 200,
        "kv_bytes": 20,
        "step_bytes": 4,
        "other_bytes": None,
    }


def test_plan_tells_which_layers_lie_where_and_why(daemon: RunningDaemon) -> None:
    chat(daemon)
    plan = send(daemon, "GET", "/llmd/plan").json
    devices = send(daemon, "GET", "/llmd/devices").json
    (model,) = [model for model in plan["models"] if model["name"] == MODEL]
    (stage,) = model["stages"]
    assert (stage["device"], stage["parts"]) == ("reference", "layers 0-1")
    assert stage["reason"] == "the setting device names it"
    assert stage["weight_bytes"] > stage["read_bytes"] > 0
    assert stage["predicted_ms"] is None, "the device was not measured"
    assert stage["measured_ms"] > 0
    assert stage["kv_bytes"] > 0
    (device,) = [one for one in devices["devices"] if one["name"] == "reference"]
    assert stage["kernels"] == [device["description"]]
    assert model["map"] == [[part, "reference"] for part in ("embed", "0", "1", "head")]


def test_plan_has_predicted_times_of_measured_devices(
    tmp_path: Path, probes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Benchmarks, "known", lambda _self, _device: QUICK)
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories, split="embed-0=reference,1-head=cpu", device="auto") as daemon:
        (model,) = send(daemon, "GET", "/llmd/plan").json["models"]
        again = send(daemon, "GET", "/llmd/plan").json["models"]
        chat(daemon)
        (used,) = send(daemon, "GET", "/llmd/plan").json["models"]
        (row,) = send(daemon, "GET", "/llmd/ps").json["models"]
    assert all(stage["predicted_ms"] > 0 for stage in model["stages"])
    assert [stage["measured_ms"] for stage in model["stages"]] == [None, None]
    assert again == [model]
    assert all(stage["measured_ms"] > 0 for stage in used["stages"])
    assert [time["device"] for time in row["stage_times"]] == ["reference", "cpu"]
    assert all(time["measured_ms"] > 0 and time["predicted_ms"] > 0 for time in row["stage_times"])


def test_plan_of_a_split_model_has_a_device_for_each_part(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    split = "embed-0.mixer=reference,0.ffn-head=cpu"
    with running_daemon(directories, split=split) as daemon:
        (model,) = send(daemon, "GET", "/llmd/plan").json["models"]
    assert model["map"] == [
        ["embed", "reference"],
        ["0.mixer", "reference"],
        ["0.ffn", "cpu"],
        ["1", "cpu"],
        ["head", "cpu"],
    ]
    assert {stage["reason"] for stage in model["stages"]} == {"the setting split assigns these layers to it"}
