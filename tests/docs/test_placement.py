"""The worked example of docs/placement.md is what the planner finds."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from llmd.api.device import HOST_MEMORY, DeviceProfile
from llmd.api.messages import Load
from llmd.cli.plan import lines_of
from llmd.engine.composition import make_host
from llmd.engine.placement import alternatives
from llmd.engine.placement.alternatives import Comparison, compare
from llmd.engine.placement.candidates import Candidate
from llmd.engine.placement.device_parts import DeviceParts
from llmd.engine.placement.stages import stage_limits
from llmd.engine.placement.typical_request import Request
from llmd.models.open_model import OpenModel, open_model
from llmd.placement.planner import best_plan
from llmd.testing.null_device import NullDevice
from tests.docs.model_sizes import MODELS, write_headers
from tests.docs.page import DOCS, rows_with

PAGE = (DOCS / "placement.md").read_text()
PREFILL_ROWS = (16, 64, 256, 512)
CARD = DeviceProfile(
    read_bytes_per_s=400e9,
    decode_bytes_per_s={"bf16": 360e9, "q4": 280e9},
    prefill_flops_per_s={
        "bf16": dict(zip(PREFILL_ROWS, (4e12, 14e12, 25e12, 30e12), strict=True)),
        "q4": dict(zip(PREFILL_ROWS, (4e12, 12e12, 20e12, 24e12), strict=True)),
    },
    kv_bytes_per_s=300e9,
    attention_flops_per_s=8e12,
    step_s=300e-6,
    part_s=5e-6,
    copy_bytes_per_s=10e9,
)
CPU = DeviceProfile(
    read_bytes_per_s=40e9,
    decode_bytes_per_s={"bf16": 38e9, "q4": 36e9},
    prefill_flops_per_s={
        "bf16": dict(zip(PREFILL_ROWS, (0.4e12, 0.7e12, 0.8e12, 0.8e12), strict=True)),
        "q4": dict(zip(PREFILL_ROWS, (0.6e12, 1.1e12, 1.2e12, 1.2e12), strict=True)),
    },
    kv_bytes_per_s=36e9,
    attention_flops_per_s=0.3e12,
    step_s=20e-6,
    part_s=3e-6,
    copy_bytes_per_s=10e9,
)
RATES = {"cuda:0": CARD, "cpu": CPU}


def candidates() -> list[Candidate]:
    info = structs.replace(NullDevice(lambda: 0.0).info, features=())
    return [
        Candidate(structs.replace(info, name="cuda:0", memory_id="card"), CARD, 7 << 29),
        Candidate(structs.replace(info, name="cpu", memory_id=HOST_MEMORY), CPU, 32 << 30),
    ]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    directory = write_headers(MODELS["Llama 3.1 8B"], tmp_path_factory.mktemp("models") / "m")
    return Load(str(directory), quant="q4", slots=1)


def opened(load: Load, probes: Path) -> OpenModel:
    return open_model(Path(load.directory), make_host(probes).architectures())


def test_the_rates_are_those_of_the_page() -> None:
    rows = {row["rate"]: row for row in rows_with(PAGE, "cuda:0, 3.5 GiB free")}
    for name, rates in RATES.items():
        column = next(title for title in next(iter(rows.values())) if title.startswith(name))
        assert float(rows["D(q4)"][column].split()[0]) * 1e9 == rates.decode_bytes_per_s["q4"]
        assert float(rows["D(bf16)"][column].split()[0]) * 1e9 == rates.decode_bytes_per_s["bf16"]
        text = rows["P(q4, n), n = 16, 64, 256, 512"][column].removesuffix(" TFLOP/s")
        flops = [float(one) * 1e12 for one in text.split(", ")]
        assert flops == list(rates.prefill_flops_per_s["q4"].values())
        assert float(rows["K"][column].split()[0]) * 1e9 == rates.kv_bytes_per_s
        assert float(rows["s"][column].split()[0]) * 1e-6 == pytest.approx(rates.step_s)
        assert float(rows["p"][column].split()[0]) * 1e-6 == pytest.approx(rates.part_s)


def test_a_feed_forward_part_takes_what_the_page_says(load: Load, tmp_path: Path) -> None:
    model = opened(load, tmp_path)
    with closing(model.checkpoint):
        for one in candidates():
            parts = DeviceParts(load, model, one, stage_limits(load, model, [one.info]))
            longer, shorter = (parts.costs(Request(256, count), (0,))[2] for count in (11, 10))
            assert longer
            assert shorter
            assert f"{1e3 * (longer.seconds - shorter.seconds):.2f} ms" in PAGE
            chunk = parts.costs(Request(256, 0), (0,))[2]
            assert chunk
            assert f"{1e3 * chunk.seconds:.1f} ms" in PAGE


def test_the_plan_is_that_of_the_page(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine, the usual seconds do not suffice for a proof.
    monkeypatch.setattr(alternatives, "best_plan", partial(best_plan, budget_s=60.0))
    model = opened(load, tmp_path)
    with closing(model.checkpoint):
        found: Comparison = compare(load, model, candidates())
    lines = "\n".join(lines_of(found)).splitlines()
    assert "\n".join(f"    {line}".rstrip() for line in lines) in PAGE
