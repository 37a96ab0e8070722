"""A daemon with memory for half of a model's experts: the same tokens, within the limit, and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gguf import GGMLQuantizationType
from prometheus_client.parser import text_string_to_metric_families

from llmd.api.messages import Load
from llmd.engine.composition import make_host
from llmd.engine.placement.stages import StageParts, lower_stage
from llmd.models.open_model import open_model
from llmd.models.program_bytes import expert_bytes
from tests.golden.models.mixtures import qwen3_moe
from tests.serving.gguf_model import write_gguf_model
from tests.serving.http import send
from tests.serving.model import write_model
from tests.serving.processes import peak_bytes
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

FAMILY = partial(qwen3_moe, hidden_size=512, moe_intermediate_size=512, num_experts=48, num_experts_per_tok=4)
"""With 302 MB of experts: half of them is more than twice what the process itself takes."""
EVERYWHERE = partial(FAMILY, mlp_only_layers=[], num_experts=32)
"""As many in all layers: GGUF knows no layers without experts after the first ones."""
Family = Callable[..., dict[str, Any]]
TOKENS = 48
SLACK = 12 << 20
"""By how much the memory of two processes may differ for anything but experts."""


def experts_of(load: Load, probes: Path) -> int:
    """Return the bytes of all experts."""
    host = make_host(probes)
    model = open_model(Path(load.directory), host.architectures(), load.context_len)
    with closing(model.checkpoint):
        whole = StageParts("cpu", 0, len(model.plan.parts))
        return expert_bytes(lower_stage(load, model, host.choose_device("cpu").info, whole))


def metrics(daemon: RunningDaemon) -> Mapping[str, float]:
    """Metrics of the model and its engine."""
    text = send(daemon, "GET", "/metrics").content.decode()
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("process", sample.labels.get("model")) in {MODEL, f"engine {MODEL}"}
    }


def in_gguf(directory: Path, family: Family, kind: GGMLQuantizationType | None = None) -> Path:
    write_gguf_model(directory / "model.gguf", family=family, kind=kind)
    return directory


def answer(daemon: RunningDaemon, prompt: str) -> str:
    fields = {"prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True}
    reply = send(daemon, "POST", "/v1/completions", {"model": MODEL, **fields})
    return str(reply.json["choices"][0]["text"])


@pytest.mark.parametrize(
    ("write", "quant"),
    [
        pytest.param(partial(write_model, family=FAMILY), None, id="as-stored"),
        pytest.param(partial(write_model, family=partial(FAMILY, num_experts=144)), "q8", id="q8"),
        pytest.param(partial(in_gguf, family=EVERYWHERE), None, id="gguf"),
        pytest.param(
            partial(in_gguf, family=partial(EVERYWHERE, num_experts=96), kind=GGMLQuantizationType.Q8_0),
            None,
            id="gguf-q8_0",
        ),
    ],
)
@pytest.mark.timeout(300)
def test_model_whose_experts_are_twice_the_memory(
    tmp_path: Path,
    write: Callable[[Path], Path],
    quant: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    directories = directories_below(tmp_path)
    path = write(directories.models / MODEL)
    experts = experts_of(Load(str(path), quant=quant), tmp_path / "probes")
    settings: dict[str, Any] = {
        "device": "cpu",
        "quant": quant,
        "kv_memory": 1 << 20,
        "slots": 1,
        "prefill_chunk": 64,
        "threads": 2,
    }
    prompts = [f"{'long ' * 20 * (number % 2)}{number}" for number in range(4)]
    with running_daemon(directories, **settings) as daemon:
        expected = [answer(daemon, prompt) for prompt in prompts]
        whole = metrics(daemon)
    assert not [name for name in whole if "expert" in name]
    caplog.clear()
    limit = experts // 2
    with running_daemon(directories, max_memory=limit, **settings) as daemon:
        assert [answer(daemon, prompt) for prompt in prompts] == expected
        after = metrics(daemon)
        peak = peak_bytes(daemon.client().ps()[0]["engine_pid"])
    notices = [record.notice for record in caplog.records if record.message == "load_notice"]  # type: ignore[attr-defined]
    assert ["read from the model's files" in notice for notice in notices] == [True]
    assert 0 < after["llmd_expert_bytes"] <= limit
    used = after["llmd_expert_hits_total"] + after["llmd_expert_misses_total"]
    assert 0 < after["llmd_expert_hit_ratio"] < 1
    assert after["llmd_expert_hit_ratio"] == after["llmd_expert_hits_total"] / used
    assert after["llmd_expert_read_bytes_total"] > experts  # some were read more than once
    assert after["llmd_resident_memory_bytes"] <= limit
    assert peak <= limit  # also while it was loaded, and in steps
    saved = whole["llmd_resident_memory_bytes"] - after["llmd_resident_memory_bytes"]
    assert saved >= experts - limit - SLACK
