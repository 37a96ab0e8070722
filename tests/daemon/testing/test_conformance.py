"""The suite passes on the reference device and finds the faults of a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import (
    INTEGER_FORMATS,
    KV_DTYPES,
    OP_KINDS,
    PLAIN_FORMATS,
    SCALED_FORMATS,
    GroupScales,
    HiddenRef,
    HostHidden,
    LateEdits,
    LoadedWeights,
    Program,
    Progress,
    Refusal,
    StageLimits,
    StepResult,
    TensorSource,
    Ticket,
    Weight,
    WeightData,
)
from llmd.api.kv import LATENT_KV_DTYPES
from llmd.api.ops import FACTOR_OPS, TABLE_OPS
from llmd.builtin.reference import numerics
from llmd.builtin.reference.device import ReferenceDevice, ReferenceWeights
from llmd.builtin.reference.stage import ReferenceStage
from llmd.testing import conformance
from llmd.testing.conformance import (
    all_cases,
    cases_for,
    check_accuracy,
    check_device,
    check_exactness,
    nmse,
    reference_outcome,
    unclaimed,
)
from llmd.testing.null_device import NullDevice, NullStage, NullWeights
from llmd.testing.runs import run
from llmd.testing.sources import RandomSource
from llmd.testing.workload import Workload, ragged


def cases() -> dict[str, Workload]:
    return {case.name: case for case in all_cases()}


def test_every_case_has_its_own_name() -> None:
    assert len(cases()) == len(all_cases())


def test_every_op_of_the_set_has_a_case() -> None:
    kinds = {op.kind for case in all_cases() for part in case.plan.parts for op in part.ops}
    assert kinds == set(ReferenceDevice().info.ops)


@pytest.mark.parametrize(
    ("case", "function"),
    [
        ("norm/rms", "rms_norm"),
        ("rope/half", "rotate"),
        ("attention/gqa-f32", "attend"),
        ("head/plain", "soft_cap"),
    ],
)
def test_a_wrong_op_is_found(monkeypatch: pytest.MonkeyPatch, case: str, function: str) -> None:
    right, running = getattr(numerics, function), []

    class Wrong(ReferenceDevice):
        """A device that computes one op wrong by 0.1 %."""

        def load(self, *arguments: Any) -> ReferenceWeights:
            running.append(True)
            return super().load(*arguments)

    def off(*args: Any, **kwargs: Any) -> Any:
        return right(*args, **kwargs) * np.float32(1.001 if running else 1.0)

    class Right(ReferenceDevice):
        def load(self, *arguments: Any) -> ReferenceWeights:
            running.clear()
            return super().load(*arguments)

    monkeypatch.setattr(numerics, function, off)
    monkeypatch.setattr(conformance, "ReferenceDevice", Right)
    assert check_accuracy(Right(), cases()[case]).problem == ""
    assert "NMSE" in check_accuracy(Wrong(), cases()[case]).problem


@pytest.mark.parametrize(
    "name", ["edited_logsumexp", "edited_entropy", "edited_deviation", "num_allowed", "target_raw"]
)
def test_a_wrong_description_of_a_row_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    right = ReferenceStage.wait

    def off(stage: ReferenceStage, ticket: Ticket, timeout_s: float) -> StepResult:
        result = right(stage, ticket, timeout_s)
        found = getattr(result, name)
        return msgspec.structs.replace(result, **{name: (found * np.float32(1.1) + 1).astype(found.dtype)})

    monkeypatch.setattr(ReferenceStage, "wait", off)
    problem = check_accuracy(ReferenceDevice(), cases()["head/plain-edits-masks"]).problem
    assert problem == f"{name} does not follow from the logits"


@pytest.mark.parametrize(
    ("tokens", "problem"),
    [
        (lambda found: np.where(found == found.max(), 0, found), "tokens does not follow from the logits"),
        (lambda _found: None, "tokens is missing"),
    ],
)
def test_wrong_tokens_are_found(
    monkeypatch: pytest.MonkeyPatch, tokens: Callable[[Any], Any], problem: str
) -> None:
    right = ReferenceStage.wait

    def off(stage: ReferenceStage, ticket: Ticket, timeout_s: float) -> StepResult:
        result = right(stage, ticket, timeout_s)
        return msgspec.structs.replace(result, tokens=tokens(result.tokens))

    monkeypatch.setattr(ReferenceStage, "wait", off)
    assert check_accuracy(ReferenceDevice(), cases()["head/draws"]).problem == problem


def test_late_edits_that_are_ignored_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(selection: LateEdits) -> LateEdits:
        return msgspec.structs.replace(selection, biases=selection.biases * 0, factors=selection.factors**0)

    right = ReferenceStage.apply_edits
    monkeypatch.setattr(
        ReferenceStage, "apply_edits", lambda stage, ticket, edits: right(stage, ticket, none(edits))
    )
    assert "does not follow" in check_accuracy(ReferenceDevice(), cases()["head/draws"]).problem


def test_what_is_undefined_for_a_row_may_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    right = ReferenceStage.wait

    def off(stage: ReferenceStage, ticket: Ticket, timeout_s: float) -> StepResult:
        result = right(stage, ticket, timeout_s)
        noise = np.random.default_rng(stage._next).integers(0, 9, result.ids.shape, np.int32)
        return msgspec.structs.replace(result, ids=np.where(result.ids < 0, noise, result.ids))

    monkeypatch.setattr(ReferenceStage, "wait", off)
    results = list(check_device(ReferenceDevice(), (cases()["head/draws"],)))
    assert len(results) == 3
    assert [result.problem for result in results] == ["", "", ""]


SPACES = {f"state_space/{name}" for name in ("grouped", "one-group", "bounds", "one-tap", "negative")}
DELTAS = {f"gated_delta/{name}" for name in ("grouped", "tiled", "elements", "one-tap", "negative")}
OF_RWKV = {f"token_shift/{name}" for name in ("one", "several", "wide")} | {
    f"generalized_delta/{name}" for name in ("even", "odd", "wide", "mixed")
}
SINKS = {
    f"attention/{name}-{kv_dtype}"
    for name in ("sinks", "sinks-window", "long-sinks")
    for kv_dtype in KV_DTYPES
}
SHARED = {f"attention/shared-{kv_dtype}" for kv_dtype in KV_DTYPES}

LATENT = {
    f"attention/{name}-{kv_dtype}"
    for name in ("latent", "latent-odd", "long-latent")
    for kv_dtype in LATENT_KV_DTYPES
}
INDEXED = {
    *(f"indexer/{name}-{kv_dtype}" for name in ("even", "odd") for kv_dtype in LATENT_KV_DTYPES),
    *(f"indexer/{name}" for name in ("long-f16", "long-partitions-f32", "all-f32", "equal-scores", "shared")),
}
COMPRESSED = {f"compress/{name}-{kv}" for name in ("overlap", "apart") for kv in LATENT_KV_DTYPES}
OF_CHOSEN = {*(f"merge_attention/chosen-{kv}" for kv in LATENT_KV_DTYPES), "merge_attention/long-chosen"}
MERGED = {
    *(f"merge_attention/{name}-{kv_dtype}" for name in ("all", "few") for kv_dtype in LATENT_KV_DTYPES),
    *("merge_attention/each", "merge_attention/long"),
    *OF_CHOSEN,
}


@pytest.mark.parametrize(
    ("feature", "names"),
    [
        ("latent", LATENT | INDEXED | COMPRESSED | MERGED),
        ("chosen_positions", INDEXED | OF_CHOSEN),
        ("attention_sums", MERGED),
        ("strides", {*(MERGED - {"merge_attention/each"}), "rope/stride"}),
        ("given_experts", {"router/given", "router/sqrt-softplus"}),
        ("limits", {"glu/limit"}),
        (
            "columns",
            {f"embed/{name}-columns" for name in ("f32", "f16", "bf16", *SCALED_FORMATS, "q8", "q6_k")},
        ),
        ("shared_keys", SHARED),
        ("sinks", SINKS | MERGED),
        ("own_weights", {"norm/rms-own", "norm/layer-own"}),
        ("draws", {"head/draws", "program/draws"}),
        ("state", {"recurrence", "program/hybrid", *DELTAS, *SPACES, *OF_RWKV}),
        ("taps", {"program/taps"}),
    ],
)
def test_only_devices_that_claim_a_feature_are_tried_with_it(feature: str, names: set[str]) -> None:
    info = ReferenceDevice().info
    others = tuple(name for name in info.features if name != feature)
    without = msgspec.structs.replace(info, features=others)
    assert {case.name for case in set(all_cases()) - set(cases_for(without))} == names
    assert unclaimed(without) == {"features": (feature,)}


@pytest.mark.parametrize("wrong", [0, 3, 6])
def test_a_wrong_tap_is_found(monkeypatch: pytest.MonkeyPatch, wrong: int) -> None:
    right = ReferenceStage.tap

    def off(stage: ReferenceStage, ticket: Ticket, part: int) -> HiddenRef:
        rows = right(stage, ticket, part).host()
        return HostHidden(rows * np.float32(1.01) if part == wrong else rows)

    expected = reference_outcome(cases()["program/taps"])
    monkeypatch.setattr(ReferenceStage, "tap", off)
    assert "NMSE" in check_accuracy(ReferenceDevice(), cases()["program/taps"], expected).problem


class Misread(RandomSource):
    """A source of weights that are read wrongly."""

    def __init__(self, misread: Callable[[WeightData], WeightData]) -> None:
        super().__init__()
        self._misread = misread

    def read(self, weight: Weight) -> WeightData:
        data = super().read(weight)
        return data if data.scales is None else self._misread(data)


@pytest.mark.parametrize(
    ("case", "misread"),
    [
        ("linear/q4_g64", lambda data: msgspec.structs.replace(data, minimums=None)),
        ("linear/q3_k", lambda data: msgspec.structs.replace(data, data=data.data ^ np.uint8(4))),
        ("linear/q6_k", lambda data: msgspec.structs.replace(data, scales=_without_sign(data.scales))),
        ("linear/iq4_nl", lambda data: msgspec.structs.replace(data, format="q4_0")),
        ("linear/q4_g64", lambda data: msgspec.structs.replace(data, format="q4_g128")),
    ],
    ids=["no minimums", "another zero", "unsigned fine scales", "no book", "wider activation groups"],
)
def test_weights_that_are_read_wrongly_are_found(
    case: str, misread: Callable[[WeightData], WeightData]
) -> None:
    workload = cases()[case]
    schedule = ragged(workload)
    right, wrong = (
        run(ReferenceDevice(), workload, schedule, source) for source in (RandomSource(), Misread(misread))
    )
    assert nmse(right, right) == 0
    assert nmse(wrong, right) > 10 * workload.max_nmse


def _without_sign(scales: GroupScales) -> GroupScales:
    assert scales.fine is not None
    return GroupScales(scales.coarse, scales.fine.view(np.uint8))


@pytest.mark.parametrize(
    ("most", "found_by"),
    [(1, ["alone"]), (16, ["alone", "in ragged steps"]), (59, ["alone", "in ragged steps"])],
)
def test_a_device_that_depends_on_the_batch_is_found(
    monkeypatch: pytest.MonkeyPatch, most: int, found_by: list[str]
) -> None:
    right = numerics.rms_norm

    def batch_dependent(x: NDArray[np.float32], gain: NDArray[np.float64], eps: float) -> NDArray[np.float32]:
        out = right(x, gain, eps)
        return np.nextafter(out, np.float32(np.inf)) if len(x) > most else out

    monkeypatch.setattr(numerics, "rms_norm", batch_dependent)
    problems = {r.name: r.problem for r in check_exactness(ReferenceDevice(), cases()["norm/rms"])}
    for label in found_by:
        assert "rows differ" in problems[f"norm/rms exact {label}"]


def test_a_format_that_a_device_lacks_is_named() -> None:
    device = ReferenceDevice()
    device.info = msgspec.structs.replace(device.info, formats=("f32",))
    result = next(iter(check_device(device, (cases()["linear/q8"],))))
    assert "q8" in result.problem


def test_what_a_device_refuses_is_a_failed_case_with_its_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    device = ReferenceDevice()
    monkeypatch.setattr(device, "check", lambda _program: [Refusal("op rope", "not written yet")])
    (result,) = check_device(device, (cases()["rope/half"],))
    assert result.problem == "op rope: not written yet"


def test_a_device_must_pass_the_integer_formats_and_activations_that_it_claims_and_all_plain_ones() -> None:
    info = msgspec.structs.replace(
        ReferenceDevice().info, formats=("f32", "q4"), activations=("int8",), precisions=("f32", "f16")
    )
    chosen = {(case.format, case.activations, case.precision) for case in cases_for(info)}
    plain = {(name, *types) for name in PLAIN_FORMATS for types in (("int8", "f32"), ("f16", "f16"))}
    assert chosen == plain | {("q4", "int8", "f32")}
    assert set(all_cases()) <= set(cases_for(ReferenceDevice().info))


def test_a_device_is_not_tried_with_ops_and_kv_dtypes_that_it_does_not_claim() -> None:
    info = msgspec.structs.replace(
        ReferenceDevice().info,
        ops=tuple(op for op in OP_KINDS if op not in {"encoder_attention", "activate"}),
        kv_dtypes=("f16", "bf16"),
    )
    chosen = cases_for(info)
    assert {op.kind for case in chosen for op in case.ops} == set(info.ops)
    assert {case.kv_dtype for case in chosen} == {"f16", "bf16"}
    assert unclaimed(info) == {
        "ops": ("encoder_attention", "activate"),
        "kv_dtypes": ("f32", "int8", "int4"),
    }
    only_plain = unclaimed(msgspec.structs.replace(info, formats=("f32",)))
    assert only_plain["formats"] == (*INTEGER_FORMATS, *SCALED_FORMATS)
    assert unclaimed(ReferenceDevice().info) == {}


def test_a_device_with_attention_must_have_a_kv_dtype_and_one_without_need_not() -> None:
    device = ReferenceDevice()
    device.info = msgspec.structs.replace(device.info, kv_dtypes=())
    (chosen,) = cases_for(device.info, (cases()["part/layers.1.mixer"],))
    (result,) = check_device(device, (chosen,))
    assert result.problem == "the device does not support KV dtype f32"
    result, *_ = check_device(device, (cases()["linear/f32"],))
    assert (result.name, result.problem) == ("linear/f32", "")


def test_a_device_that_does_not_claim_the_precision_of_its_activations_fails() -> None:
    device = ReferenceDevice()
    device.info = msgspec.structs.replace(device.info, activations=("f16",), precisions=("f32",))
    chosen = cases_for(device.info, (cases()["linear/f32"],))
    problems = [result.problem for result in check_device(device, chosen) if result.problem]
    assert problems == ["precision f16: with plain weights, keys and values the device computes with f32"]


class Counting(NullDevice):
    """A device that counts the calls of the suite."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.loaded: list[CountedParts] = []

    def load(
        self,
        program: Program,
        tensors: TensorSource,
        progress: Progress,
        have: Sequence[LoadedWeights] = (),
    ) -> NullWeights:
        self.loaded.append(CountedParts(self, program))
        return self.loaded[-1]


class CountedParts(NullWeights):
    def __init__(self, device: NullDevice, program: Program) -> None:
        super().__init__(device, program)
        self.stages: list[NullStage] = []
        self.is_closed = False

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> NullStage:
        self.stages.append(super().stage(blocks, limits))
        return self.stages[-1]

    def close(self) -> None:
        self.is_closed = True


def test_a_device_that_takes_5_ms_for_a_step_ends_the_suite_within_75_seconds() -> None:
    device, share = Counting(), 10
    chosen = cases_for(device.info)[::share]
    assert len(list(check_device(device, chosen))) > 2 * len(chosen)
    num_steps = sum(len(stage.submitted) for parts in device.loaded for stage in parts.stages)
    assert num_steps * share * 0.005 < 75
    assert len(device.loaded) < 3 * len(chosen)
    assert all(parts.is_closed for parts in device.loaded)


def test_a_device_that_reads_tables_as_plain_numbers_need_not_look_up_integers() -> None:
    info = msgspec.structs.replace(ReferenceDevice().info, integer_ops=FACTOR_OPS)
    left_out = set(all_cases()) - set(cases_for(info))
    assert {case.integer_ops for case in left_out} == {TABLE_OPS, (*FACTOR_OPS, *TABLE_OPS)}
    assert {case.format for case in left_out} == {*INTEGER_FORMATS, *SCALED_FORMATS}
