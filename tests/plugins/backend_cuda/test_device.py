"""A simulated card passes the conformance suite, and says what it is and what it refuses."""

from __future__ import annotations

import gc
from pathlib import Path

import msgspec
import pytest

from llmd.api.features import COMPUTED, SPANS
from llmd.testing.conformance import cases_for, check_accuracy, check_case, check_feeding, unclaimed
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource
from llmd_backend_cuda.cupy_runtime import CupyRuntime
from llmd_backend_cuda.device import CudaDevice, describe, prepared_specs
from llmd_backend_cuda.driver import Driver
from llmd_backend_cuda.kernel_cache import KernelCache
from llmd_backend_cuda.runtime import KernelSpec
from tests.cuda.host_cuda import HostCuda, build_driver
from tests.cuda.simulated import CARD, NEEDS_COMPILER, SimulatedCard, lowered, open_device
from tests.plugins.backend_cpu.workbench import select
from tests.plugins.backend_cuda.bench import LIMITS, PLAN, one

pytestmark = NEEDS_COMPILER

CASES = {case.name: case for case in cases_for(describe(CARD))}
FEW = {
    "adapt/bf16-precision-f16",
    "adapt/value-is-kept-precision-f16",
    "embed/bf16-precision-f16",
    "embed/f16-columns-precision-f16",
    "embed_position/f16-precision-f16",
    "embed_token_type/f32-mixed-precision-f16",
    "norm/rms-heads-precision-f16",
    "norm/layer-bias-precision-f16",
    "norm/rms-own-precision-f16",
    "multiply-precision-f16",
    "join/heads-precision-f16",
    "add-precision-f16",
    "linear/f16-rows-precision-f16",
    "linear/q4-precision-f16",
    "rope/interleaved-precision-f16",
    "glu/relu-threshold-precision-f16",
    "activate/gelu-precision-f16",
    "attention/window-int8-precision-f16",
    "attention/window-int4-precision-f16",
    "attention/sinks-window-f16-precision-f16",
    "attention/shared-int4-precision-f16",
    "attention/latent-odd-f16-precision-f16",
    "head_linear/two-of-one-tensor-precision-f16",
    "indexer/odd-f32-precision-f16",
    "indexer/shared-precision-f16",
    "recurrence-precision-f16",
    "compress/overlap-f32-precision-f16",
    "merge_attention/chosen-f16-precision-f16",
    "mix_streams/4-20-precision-f16",
    "collapse_streams/4-precision-f16",
    "rope/stride-precision-f16",
    "glu/limit-precision-f16",
    "router/given-precision-f16",
    "router/groups-precision-f16",
    "experts/limit-precision-f16",
    "gate/4-precision-f16",
    "gated_delta/elements-precision-f16",
    "gated_delta/negative-precision-f16",
    "state_space/bounds-precision-f16",
    "state_space/negative-precision-f16",
    "token_shift/several-precision-f16",
    "generalized_delta/odd-precision-f16",
    "encoder_attention/3x20-precision-f16",
    "head/scale-softcap-bias-edits-masks-precision-f16",
    "part/layers.1.ffn-precision-f16",
    "program/full-f16-precision-f16",
}
"""Each op, and a whole program; `make test-full` runs all cases."""
ACCURATE = [
    "program/adapters-precision-f16",
    "program/window-q8-activations-f16",
    "program/draws-precision-f16",
    "program/streamed-in-part-precision-f16",
    "program/hybrid-precision-f16",
    "program/taps-precision-f16",
    "program/encoder-f16-precision-f16",
    "program/q4-precision-f16",
]
"""Cases of which `make test` leaves out the exactness."""


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return open_device()


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=() if name in FEW else pytest.mark.exhaustive) for name in CASES]
)
def test_conforms(device: CudaDevice, case: str) -> None:
    results = list(check_case(device, CASES[case]))
    assert [result for result in results if result.problem] == []
    assert len(results) > 1, "accuracy and exactness were both checked"


@pytest.mark.parametrize("case", ACCURATE)
def test_is_accurate(device: CudaDevice, case: str) -> None:
    assert check_accuracy(device, CASES[case]).problem == ""
    if CASES[case].draws:
        assert check_feeding(device, CASES[case]).problem == ""


def test_the_few_cases_have_every_op_and_feature() -> None:
    few = [CASES[name] for name in (*FEW, *ACCURATE)]
    assert {op.kind for case in few for op in case.ops} == set(describe(CARD).ops)
    assert {feature for case in few for feature in case.features} == {*COMPUTED} - {SPANS}


def test_a_card_is_described_before_it_is_opened() -> None:
    info = describe(CARD)
    assert info == open_device().info
    assert (info.name, info.kind, info.memory_id) == ("cuda:0", "cuda", "pci:0000:00:00.0")
    assert info.description == CARD.description
    assert (info.activations, info.precisions) == (("f16", "int8"), ("f16",))
    assert info.row_exact
    assert info.queues
    assert not info.uses_threads
    assert "kv_dtypes" not in unclaimed(info)


def test_blocks_move_only_between_cards_that_compute_alike() -> None:
    other = msgspec.structs.replace(CARD, index=1, pci="0000:02:00.0")
    older = msgspec.structs.replace(CARD, capability=(8, 9))
    assert describe(other).kv_layout == describe(CARD).kv_layout
    assert describe(older).kv_layout != describe(CARD).kv_layout


def test_says_what_it_cannot_run(device: CudaDevice) -> None:
    assert device.check(lowered(TinyModel().plan())) == []
    (refusal,) = device.check(lowered(TinyModel(layers=1, head_dim=580).plan()))
    assert refusal.what == "heads of 580 elements"


def test_free_bytes_shrink_by_what_is_loaded() -> None:
    device = open_device(SimulatedCard(memory_bytes=1 << 30))
    before = device.free_bytes()
    loaded = device.load(lowered(TinyModel(layers=1).plan()), RandomSource(), lambda _done, _total: None)
    assert device.free_bytes() < before
    loaded.close()
    assert device.free_bytes() == before


def test_a_closed_device_does_nothing() -> None:
    device = open_device()
    device.close()
    device.close()
    for call in (device.free_bytes, lambda: device.read_rate(0.1)):
        with pytest.raises(ValueError, match="this device is closed"):
            call()


class NoCompiler(KernelCache):
    """Code for a driver that runs nothing."""

    def code(self, spec: KernelSpec) -> bytes:
        return b"code"


def test_a_closed_device_leaves_nothing_on_the_card(tmp_path: Path) -> None:
    """Graphs, events, kernels and pinned memory included."""
    api, driver = HostCuda(), Driver(str(build_driver(tmp_path)))
    device = open_device(CupyRuntime(0, NoCompiler((9, 0), tmp_path), api=api, driver=driver))
    weights = device.load(lowered(PLAN), RandomSource(), lambda _done, _total: None)
    stage = weights.stage({0: 8, 1: 8}, LIMITS)
    for _ in range(2):
        ticket = stage.submit(one(1), None, select(1))
        stage.wait(ticket, 1.0)
        stage.release(ticket)
    assert any(isinstance(kept, tuple) for kept in api.alive.values()), "there is a graph"
    stage.close()
    weights.close()
    device.close()
    assert list(api.alive.values()) == ["stream"], "which the stage refers to"
    del stage, weights, device
    gc.collect()
    assert api.alive == {}


def test_what_is_prepared_can_be_compiled() -> None:
    card = SimulatedCard()
    for spec in prepared_specs():
        assert card.kernel(spec).spec == spec
