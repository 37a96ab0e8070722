"""Cases in the arithmetic and the KV dtypes that a device claims.

The cases of the suite are written for activations in int8, precision f32 and KV in f32. A device runs all of
them in the arithmetic that it chooses itself, and those of `IN_EVERY_ARITHMETIC` in the others that it
claims.
"""

from __future__ import annotations

import msgspec

from llmd.api import (
    INTEGER_FORMATS,
    KV_DTYPES,
    PLAIN_FORMATS,
    SCALED_FORMATS,
    DeviceInfo,
    KVDtype,
    ModelPlan,
    Op,
    TensorRef,
)
from llmd.api.expert_ops import Experts, Router
from llmd.api.kv import LATENT_KV_DTYPES
from llmd.models.arithmetic import Arithmetic, chosen_arithmetic
from llmd.testing.bounds import MAX_NMSE
from llmd.testing.workload import Workload

IN_EVERY_ARITHMETIC = frozenset(
    {
        *(f"linear/{name}" for name in (*PLAIN_FORMATS, *SCALED_FORMATS, *INTEGER_FORMATS)),
        *(f"attention/gqa-{kv_dtype}" for kv_dtype in KV_DTYPES),
        "encoder_attention/4x12",
        "head/plain",
        "experts/gated",
        "experts/q4",
        "head_linear/f32",
        "head_linear/q4",
        *(f"attention/latent-{kv_dtype}" for kv_dtype in LATENT_KV_DTYPES),
        "program/window-f16",
        "program/encoder-f32",
        "program/q4",
        "program/q3_g32_sym",
    }
)
"""Names of cases with each op that rounds, in each format and KV dtype, and of some whole programs."""

_ROUNDING_OPS = {"linear", "head", "experts", "head_linear", "attention", "encoder_attention"}


def claimed_arithmetics(info: DeviceInfo) -> tuple[Arithmetic, ...]:
    """Return each arithmetic that the device claims, first its own choice."""
    asked = (*info.activations, *info.precisions)
    others = (chosen_arithmetic(info, activations) for activations in asked)
    claimed = (one for one in others if one.precision in info.precisions)
    return tuple(dict.fromkeys((chosen_arithmetic(info, None), *claimed)))


def cases_of_device(info: DeviceInfo, cases: tuple[Workload, ...]) -> tuple[Workload, ...]:
    """Return the cases as this device runs them: renamed where arithmetic or KV dtype differ from theirs."""
    claimed = claimed_arithmetics(info)
    chosen = [in_arithmetic(case, info, claimed[0]) for case in cases]
    few = [case for case in cases if case.name in IN_EVERY_ARITHMETIC]
    others = [in_arithmetic(case, info, other) for other in claimed[1:] for case in few]
    named: dict[str, Workload] = {}
    for case in (*chosen, *others):
        named.setdefault(case.name, case)
    return tuple(named.values())


def in_arithmetic(case: Workload, info: DeviceInfo, arithmetic: Arithmetic) -> Workload:
    """Return the case in an arithmetic, and in a KV dtype that the device claims, with the bound for both.

    A program whose values are rounded uses every expert for each row: of two experts with nearly equal
    scores, devices that round at different places would choose different ones.
    """
    kv_dtype = _kv_dtype(case, info)
    name = case.name + _suffix(case, arithmetic)
    if case.keeps_keys and kv_dtype != case.kv_dtype:
        name += f"-kv-{kv_dtype}"
    return msgspec.structs.replace(
        case,
        name=name,
        plan=_plan(case, arithmetic),
        kv_dtype=kv_dtype,
        activations=arithmetic.activations,
        precision=arithmetic.precision,
        max_nmse=_bound(case, kv_dtype, arithmetic),
    )


def _plan(case: Workload, arithmetic: Arithmetic) -> ModelPlan:
    if arithmetic.precision == "f32" or case.last_part - case.first_part == 1:
        return case.plan
    parts = (
        msgspec.structs.replace(part, ops=tuple(_with_every_expert(op) for op in part.ops))
        for part in case.plan.parts
    )
    return msgspec.structs.replace(case.plan, parts=tuple(parts))


def _with_every_expert(op: Op) -> Op:
    match op:
        case Router(weight=TensorRef(shape=(count, _))):
            return msgspec.structs.replace(op, top_k=count)
        case Experts(down=TensorRef(shape=(count, _, _))):
            return msgspec.structs.replace(op, top_k=count)
    return op


def _kv_dtype(case: Workload, info: DeviceInfo) -> KVDtype:
    if case.kv_is_tested or case.kv_dtype in info.kv_dtypes or not info.kv_dtypes:
        return case.kv_dtype
    return info.kv_dtypes[0]


def _suffix(case: Workload, arithmetic: Arithmetic) -> str:
    if case.format in INTEGER_FORMATS and arithmetic.activations != "int8":
        return f"-activations-{arithmetic.activations}"
    return "" if arithmetic.precision == "f32" else f"-precision-{arithmetic.precision}"


def _bound(case: Workload, kv_dtype: KVDtype, arithmetic: Arithmetic) -> float:
    if not {op.kind for op in case.ops} & _ROUNDING_OPS:
        return case.max_nmse
    in_int8 = case.format in INTEGER_FORMATS and arithmetic.activations == "int8"
    in_codes = in_int8 and arithmetic.precision != "f32" and kv_dtype in PLAIN_FORMATS
    by_kv_dtype = MAX_NMSE[arithmetic.precision]
    bounds = by_kv_dtype["int8" if in_codes else kv_dtype if case.keeps_keys else "f32"]
    least = bounds.program if case.last_part - case.first_part > 1 else bounds.part
    # The bound of a case in an integer format is for activations in int8.
    return least if case.format in INTEGER_FORMATS and not in_int8 else max(case.max_nmse, least)
