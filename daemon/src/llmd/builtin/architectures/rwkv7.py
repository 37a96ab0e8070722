"""RWKV-7: layers that mix each row with the one before it, and keep a matrix for each head."""

from __future__ import annotations

from llmd.api import HIDDEN, Embed, Head, KVGroup, LeftOut, ModelPlan, Op, Part, TensorRef
from llmd.api.activations import Activation
from llmd.api.plugins import Config
from llmd.api.step_buffers import FLOAT_BYTES
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import UNLIMITED
from llmd.builtin.architectures.rwkv7_layer import FIRST_VALUES, Layer, Ranks, Sizes, layer_ops
from llmd.builtin.architectures.shape import MAX_HEAD_DIM, MAX_LAYERS

ACTIVATIONS: dict[str, Activation] = {"sqrelu": "relu2"}
"""Names of the activation between the matrices of channel mixing."""
ROUNDED_TO = 32
"""Ranks and widths that a configuration leaves out are multiples of this."""
DUMMIES = LeftOut(
    "a mix of values in the first layer",
    ("blk.0.time_mix_v0.", "blk.0.time_mix_v1.", "blk.0.time_mix_v2."),
    why="it has no layer before it whose values it could mix in",
)
"""What llama.cpp's converter adds to files."""


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Peng et al. 2025, "RWKV-7 'Goose' with Expressive Dynamic State Evolution"."""
    fields = ConfigFields(config)
    sizes = _sizes(fields)
    num_layers = fields.size("num_hidden_layers", at_most=MAX_LAYERS)
    vocab = fields.size("vocab_size")
    numbers = range(num_layers)
    layers = [Part(f"layer {n} mixer", "mixer", n, layer_ops(Layer(n, sizes, group=0))) for n in numbers]
    state_bytes = FLOAT_BYTES * sizes.state_elements
    return ModelPlan(
        architecture="rwkv7",
        hidden_size=sizes.hidden,
        vocab_size=vocab,
        context_len=context_len or UNLIMITED,
        max_context_len=UNLIMITED,
        groups=(KVGroup(0, None, 0, 0, tuple(numbers), kind="state", state_bytes=state_bytes),),
        parts=(_embed_part(fields, sizes, vocab), *layers, _head_part(fields, sizes, vocab)),
        left_out=(DUMMIES,),
        carried=(FIRST_VALUES,),
    )


def _sizes(fields: ConfigFields) -> Sizes:
    if "attn" in fields:
        fields.refuse_unsupported("attn", "an object", "null: no layers of attention")
    hidden = fields.size("hidden_size")
    heads, head_dim = _heads(fields, hidden)
    if hidden != heads * head_dim:
        fields.contradict(f"{heads} heads of {head_dim} elements do not add up to hidden_size {hidden}")
    return Sizes(
        hidden=hidden,
        heads=heads,
        head_dim=head_dim,
        inner=_inner(fields, hidden),
        ranks=_ranks(fields, hidden, head_dim),
        eps=fields.positive("norm_eps", 1e-5),
        has_norm_bias=fields.flag("norm_bias", default=True),
        activation=fields.choice("hidden_act", ACTIVATIONS, "sqrelu"),
        joined_shares=fields.flag("joined_shares", default=False),
    )


def _heads(fields: ConfigFields, hidden: int) -> tuple[int, int]:
    if "head_dim" in fields or "num_heads" not in fields:
        head_dim = fields.size("head_dim", 64, at_most=MAX_HEAD_DIM)
        return max(1, hidden // head_dim), head_dim
    heads = fields.size("num_heads", at_most=hidden)
    return heads, hidden // heads


def _inner(fields: ConfigFields, hidden: int) -> int:
    stated = fields.size("hidden_ratio", 4) * hidden
    return fields.size("intermediate_size", -(-stated // ROUNDED_TO) * ROUNDED_TO)


def _ranks(fields: ConfigFields, hidden: int, head_dim: int) -> Ranks:
    """Return the ranks; those that are not stated follow from the sizes, as in fla."""

    def rank(name: str, factor: float) -> int:
        usual = round(factor * hidden**0.5 / ROUNDED_TO) * ROUNDED_TO
        return fields.size(f"{name}_low_rank_dim", max(ROUNDED_TO, usual))

    of_heads = head_dim / 64
    return Ranks(
        decay=rank("decay", 2.5 * of_heads),
        rate=rank("a", 2.5 * of_heads),
        value=rank("v", 1.7 * of_heads),
        gate=rank("gate", 5.0),
    )


def _embed_part(fields: ConfigFields, sizes: Sizes, vocab: int) -> Part:
    ops: list[Op] = [Embed(HIDDEN, _table(sizes, vocab))]
    if fields.flag("norm_first", default=True):
        ops.append(sizes.norm(HIDDEN, HIDDEN, "model.layers.0.pre_norm"))
    return Part("embedding", "embed", None, tuple(ops))


def _table(sizes: Sizes, vocab: int) -> TensorRef:
    return TensorRef("model.embeddings.weight", (vocab, sizes.hidden))


def _head_part(fields: ConfigFields, sizes: Sizes, vocab: int) -> Part:
    table = _table(sizes, vocab)
    tied = fields.flag("tie_word_embeddings", default=False)
    head = Head("x", table if tied else TensorRef("lm_head.weight", table.shape))
    return Part("head", "head", None, (sizes.norm(HIDDEN, "x", "model.norm"), head))
