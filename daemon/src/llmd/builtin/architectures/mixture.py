"""The ops of a mixture of experts, which takes the place of a feed-forward network."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import Add, Embed, Experts, Gate, Op, Router, TensorRef
from llmd.api.expert_ops import GroupScore, Score
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.layer import LayerBuilder, LayerStyle
from llmd.builtin.architectures.shape import Shape

MAX_EXPERTS = 4096


class ExpertNames(msgspec.Struct, frozen=True):
    """Names of the tensors of a mixture, below the layer; ``*`` stands for the number of an expert."""

    router: str = "mlp.gate.weight"
    gate: str | None = "mlp.experts.*.gate_proj.weight"
    """None: experts have no gate."""
    up: str = "mlp.experts.*.up_proj.weight"
    """Equal to ``gate`` if one tensor has the rows of both: see `Mixture.layout`."""
    down: str = "mlp.experts.*.down_proj.weight"
    correction: str | None = None
    """Of `Router.correction`; None: there is none."""
    given: str | None = None
    """Of a table with the experts of each token, of `Router.given`; None: scores decide."""
    router_bias: str | None = None
    """None: the router has no bias."""
    gains: str | None = None
    """Of `Router.gains`; None: there are none."""
    biases: tuple[str, str, str] | None = None
    """Of gate, up and down, the first two equal as above; None: there are none."""


class StackLayout(msgspec.Struct, frozen=True):
    """How a checkpoint stores the matrices of experts."""

    alternate: bool = False
    """In a tensor that has the rows of gate and up, they alternate; else those of the gate come first."""
    transposed: bool = False
    """Matrices are ``[in, out]``."""


class SharedExpert(msgspec.Struct, frozen=True):
    """A feed-forward network that all rows use, and whose output is added to that of the experts."""

    inner: int
    """Elements between its matrices."""
    gate_up: tuple[str | None, str]
    """Modules of its gate and of its up matrix; equal if one tensor has the rows of both; None: no gate."""
    down: str
    opening: str | None = None
    """Module that computes a number for each row, whose sigmoid multiplies the output; None: 1."""


def shared_expert(module: str, inner: int, opening: str | None = None, *, gated: bool = True) -> SharedExpert:
    """Return a shared expert with the usual names below ``module``."""
    gate = f"{module}.gate_proj" if gated else None
    return SharedExpert(inner, (gate, f"{module}.up_proj"), f"{module}.down_proj", opening)


class Mixture(msgspec.Struct, frozen=True):
    """How the mixtures of a family differ from those of other families."""

    num_experts: int
    inner: int
    """Elements between the matrices of an expert."""
    top_k: int
    names: ExpertNames = ExpertNames()
    score: Score = "softmax"
    normalized: bool = True
    factor: float = 1.0
    scale: float = 1.0
    """Of `Router`."""
    groups: int = 1
    top_groups: int = 1
    group_score: GroupScore = "sum_of_two"
    limit: float | None = None
    """Of `Experts`."""
    offset: float = 0.0
    """Of `Experts`."""
    layout: StackLayout = StackLayout()
    shared: SharedExpert | None = None
    latent: int | None = None
    """Elements of what experts read and write, between two matrices for all of them; None: they read and
    write rows of hidden states.
    """
    latent_modules: tuple[str, str] = ("", "")
    """The matrices to and from these elements."""


def read_top_k(fields: ConfigFields, num_experts: int, name: str = "num_experts_per_tok") -> int:
    """Return the number of experts that a row uses, the field ``name``.

    Raises:
        CheckpointError: it is missing, or larger than the number of experts.
    """
    top_k = fields.size(name)
    if top_k > num_experts:
        fields.contradict(f"{name} is {top_k}, but there are {num_experts} experts")
    return top_k


def mixture_ops(mixture: Mixture, shape: Shape, style: LayerStyle, layer: int) -> tuple[Op, ...]:
    """Return the ops of the second part of a layer."""
    build = LayerBuilder(shape, style, layer)
    return (
        *build.pre_norm(1),
        *_given_experts(mixture, build),
        router_op(mixture, build, build.input),
        *_experts(mixture, build),
        *(() if mixture.shared is None else _shared_expert(mixture.shared, build)),
        *build.post_norm(1),
        build.residual(),
    )


def _given_experts(mixture: Mixture, build: LayerBuilder) -> Iterator[Op]:
    """Yield the op that looks up the experts of each token, if a table has them."""
    if mixture.names.given is not None:
        shape = (build.shape.vocab_size, mixture.top_k)
        name = build.name(mixture.names.given)
        yield Embed("given", TensorRef(name, shape, integers_below=mixture.num_experts))


def router_op(mixture: Mixture, build: LayerBuilder, x: str) -> Op:
    """Return the op that writes ``routes``."""
    count, names = mixture.num_experts, mixture.names
    weight = TensorRef(build.name(names.router), (count, build.shape.hidden_size))

    def vector(name: str | None) -> TensorRef | None:
        return None if name is None else TensorRef(build.name(name), (count,))

    return Router(
        x,
        "routes",
        weight,
        mixture.top_k,
        mixture.score,
        mixture.normalized,
        mixture.factor,
        mixture.scale,
        groups=mixture.groups,
        top_groups=mixture.top_groups,
        group_score=mixture.group_score,
        bias=vector(names.router_bias),
        correction=vector(names.correction),
        gains=vector(names.gains),
        given=None if names.given is None else "given",
    )


def _experts(mixture: Mixture, build: LayerBuilder) -> Iterator[Op]:
    """Yield the ops that write the output of the experts to ``y``."""
    hidden, latent = build.shape.hidden_size, mixture.latent
    into, back = mixture.latent_modules
    if latent is None:
        yield experts_op(mixture, build, build.input, "y", hidden)
        return
    yield build.linear(build.input, {"latent": (into, latent)}, hidden, bias=False)
    yield experts_op(mixture, build, "latent", "y", latent)
    yield build.linear("y", {"y": (back, hidden)}, latent, bias=False)


def experts_op(mixture: Mixture, build: LayerBuilder, x: str, out: str, width: int) -> Op:
    """Return the op that reads ``routes`` and ``x``, rows of ``width`` elements."""
    names, inner = mixture.names, mixture.inner
    stacks = _Stacks(mixture, build, is_fused=names.gate == names.up)
    gate_bias, up_bias, down_bias = names.biases or (None, None, None)
    return Experts(
        x,
        "routes",
        out,
        gate=None if names.gate is None else stacks.matrix(names.gate, inner, width, half=0),
        up=stacks.matrix(names.up, inner, width, half=1),
        down=stacks.matrix(names.down, width, inner),
        activation=build.style.activation,
        top_k=mixture.top_k,
        limit=mixture.limit,
        offset=mixture.offset,
        gate_bias=stacks.vector(gate_bias, inner, half=0),
        up_bias=stacks.vector(up_bias, inner, half=1),
        down_bias=stacks.vector(down_bias, width),
    )


class _Stacks(msgspec.Struct, frozen=True):
    """Refers to the tensors of the experts of a layer; ``half`` 0 is that of the gate, 1 that of up."""

    mixture: Mixture
    build: LayerBuilder
    is_fused: bool
    """One tensor has the rows of gate and up."""

    def matrix(self, name: str, rows: int, cols: int, half: int | None = None) -> TensorRef:
        whole = self._vectors(name, rows, half)
        transposed = self.mixture.layout.transposed
        count, all_rows = whole.shape
        shape = (count, cols, all_rows) if transposed else (count, all_rows, cols)
        return msgspec.structs.replace(whole, shape=shape, is_transposed=transposed)

    def vector(self, name: str | None, rows: int, half: int | None = None) -> TensorRef | None:
        return None if name is None else self._vectors(name, rows, half)

    def _vectors(self, name: str, rows: int, half: int | None) -> TensorRef:
        count, full = self.mixture.num_experts, self.build.name(name)
        if half is None or not self.is_fused:
            return TensorRef(full, (count, rows), is_stack=True)
        if self.mixture.layout.alternate:
            return TensorRef(full, (count, 2 * rows), rows=(half, half + 1), period=2, is_stack=True)
        part = (half * rows, (half + 1) * rows)
        return TensorRef(full, (count, 2 * rows), rows=part, is_stack=True)


def _shared_expert(shared: SharedExpert, build: LayerBuilder) -> Iterator[Op]:
    """Yield the ops that add the output of the shared expert to ``y``."""
    (gate, up), hidden = shared.gate_up, build.shape.hidden_size
    if gate == up:
        yield build.fused(gate, {"gate": shared.inner, "up": shared.inner})
    else:
        modules = {"gate": gate, "up": up}
        outs = {out: (module, shared.inner) for out, module in modules.items() if module is not None}
        yield build.linear(build.input, outs, hidden, bias=False)
    yield build.activation("inner")
    yield build.linear("inner", {"shared": (shared.down, hidden)}, shared.inner, bias=False)
    if shared.opening is not None:
        yield build.linear(build.input, {"opening": (shared.opening, 1)}, hidden, bias=False)
        yield Gate("shared", "opening", "shared")
    yield Add("y", "shared", "y")
