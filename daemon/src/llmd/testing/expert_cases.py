"""Workloads for mixtures of experts: routers, experts in every format, gates."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import HIDDEN, Embed, Experts, Format, Gate, Linear, Op, Router, TensorRef
from llmd.api.activations import Activation
from llmd.testing.op_cases import embed_case, part_case
from llmd.testing.workload import Workload

_WIDTH = 48
_EXPERTS = 12
_WEIGHT = TensorRef("router", (_EXPERTS, _WIDTH))

_SOFTMAX = Router(HIDDEN, "r", _WEIGHT, 3)
_SIGMOID = Router(
    HIDDEN, "r", _WEIGHT, 3, "sigmoid", factor=2.5, correction=TensorRef("router.correction", (_EXPERTS,))
)
_ROUTERS = {
    "softmax": _SOFTMAX,
    "softmax-scores": msgspec.structs.replace(_SOFTMAX, normalized=False),
    "one": msgspec.structs.replace(_SOFTMAX, top_k=1, normalized=False),
    "all": msgspec.structs.replace(_SOFTMAX, top_k=_EXPERTS),
    "bias-scale": msgspec.structs.replace(_SOFTMAX, scale=0.3, bias=TensorRef("router.bias", (_EXPERTS,))),
    "gains": msgspec.structs.replace(_SOFTMAX, gains=TensorRef("router.gains", (_EXPERTS,))),
    "sigmoid": _SIGMOID,
    "groups": msgspec.structs.replace(_SIGMOID, groups=4, top_groups=2),
    "largest-groups": msgspec.structs.replace(
        _SOFTMAX, groups=3, top_groups=1, group_score="largest", normalized=False, factor=16.0
    ),
    "sqrt-softplus": msgspec.structs.replace(_SIGMOID, score="sqrt_softplus"),
}


def expert_cases() -> Iterator[Workload]:
    """Yield the cases with plain weights."""
    for width in (1, 4, _WIDTH):
        gated = (_linear(HIDDEN, "g", width, _WIDTH), Gate(HIDDEN, "g", HIDDEN))
        yield part_case(f"gate/{width}", gated, max_nmse=1e-9)
    for name, router in _ROUTERS.items():
        ops = (router, _linear("r", HIDDEN, _WIDTH, _EXPERTS))
        yield part_case(f"router/{name}", ops, max_nmse=1e-9)
    for fmt in ("f16", "bf16"):
        ops = (_SIGMOID, _linear("r", HIDDEN, _WIDTH, _EXPERTS))
        yield part_case(f"router/{fmt}", ops, fmt, max_nmse=1e-9)
    yield _given_experts()
    yield from _experts()


def _given_experts() -> Workload:
    """Return a case in which a table has the experts of each token, some of them twice."""
    case = embed_case("router/given", Embed(HIDDEN, TensorRef("table", (131, _WIDTH))), "f32")
    table = TensorRef("given", (131, 3), integers_below=_EXPERTS)
    router = Router(HIDDEN, "r", _WEIGHT, 3, "sqrt_softplus", factor=1.5, given="given")
    ops = (*case.ops, Embed("given", table), router, _linear("r", HIDDEN, _WIDTH, _EXPERTS))
    first, *others = case.plan.parts
    parts = (msgspec.structs.replace(first, ops=ops), *others)
    plan = msgspec.structs.replace(case.plan, parts=parts)
    return msgspec.structs.replace(case, plan=plan, integer_ops=(), max_nmse=1e-9)


def _experts() -> Iterator[Workload]:
    mixtures = {
        "gated": _mixture(_SOFTMAX, 37),
        "one": _mixture(_ROUTERS["one"], 32),
        "all": _mixture(_ROUTERS["all"], 20),
        "few-of-many": _mixture(Router(HIDDEN, "r", TensorRef("router", (150, _WIDTH)), 2), 24),
        "biases": _mixture(_SOFTMAX, 40, has_biases=True),
        "limit": _mixture(_SOFTMAX, 40, limit=1.5, offset=1.0, activation="quick_gelu", has_biases=True),
        "ungated": _mixture(_SIGMOID, 56, gated=False, activation="relu2"),
    }
    for name, ops in mixtures.items():
        yield part_case(f"experts/{name}", ops, max_nmse=1e-9)
    for fmt in ("f16", "bf16"):
        yield part_case(f"experts/{fmt}", mixtures["gated"], fmt, max_nmse=1e-9)


def integer_case(name: Format, width: int, inner: int) -> Workload:
    """Return a case of experts in an integer format, with rows of ``width`` and ``inner`` elements."""
    router = Router(HIDDEN, "r", TensorRef("router", (6, width)), 2)
    return part_case(f"experts/{name}", _mixture(router, inner), name, max_nmse=1e-7, width=width)


def _mixture(
    router: Router,
    inner: int,
    *,
    gated: bool = True,
    has_biases: bool = False,
    limit: float | None = None,
    offset: float = 0.0,
    activation: Activation = "silu",
) -> tuple[Op, ...]:
    """Return a router, and experts with ``inner`` elements between their matrices."""
    count, width = router.weight.shape

    def stack(name: str, *shape: int) -> TensorRef:
        return TensorRef(name, (count, *shape), is_stack=True)

    def bias(name: str, rows: int) -> TensorRef | None:
        return stack(f"{name}.bias", rows) if has_biases else None

    experts = Experts(
        HIDDEN,
        router.out,
        HIDDEN,
        gate=stack("gate", inner, width) if gated else None,
        up=stack("up", inner, width),
        down=stack("down", width, inner),
        activation=activation,
        top_k=router.top_k,
        limit=limit,
        offset=offset,
        gate_bias=bias("gate", inner) if gated else None,
        up_bias=bias("up", inner),
        down_bias=bias("down", width),
    )
    return router, experts


def _linear(x: str, out: str, rows: int, cols: int) -> Linear:
    return Linear(x, (out,), (TensorRef(f"{out}.weight", (rows, cols)),), (None,))
