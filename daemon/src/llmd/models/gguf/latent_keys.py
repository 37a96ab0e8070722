"""Make the GGUF keys for latent attention. `llmd.models.gguf.mixtures` reads them back."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api.latent_ops import HeadLinear
from llmd.api.ops import Attention, Linear
from llmd.api.plan import ModelPlan, Part
from llmd.models.gguf.fields import LATENT_RANK
from llmd.models.gguf.kimi_linear import KIMI
from llmd.models.gguf.metadata import Value


def latent_keys(plan: ModelPlan) -> dict[str, Value]:
    """Return the keys without the architecture prefix; none for a model without latent attention.

    Keys and values have the sizes that attention sees, and those of heads under the names that end in
    ``mla``. Files of Kimi Linear leave out what attention sees of values.
    """
    found = next(_latents(plan), None)
    if found is None:
        return {}
    part, attention, rank = found
    seen: dict[str, Value] = {} if plan.architecture == KIMI else {"attention.value_length": rank}
    of_keys, of_values = (op.weight.view_shape for op in part.ops if isinstance(op, HeadLinear))
    low = _rank_of_queries(part)
    return {
        "attention.key_length": attention.head_dim,
        **seen,
        "attention.key_length_mla": of_keys[-1] + attention.head_dim - rank,
        "attention.value_length_mla": of_values[-2],
        LATENT_RANK: rank,
        **({"attention.q_lora_rank": low} if low else {}),
    }


def rotated_elements(plan: ModelPlan) -> int | None:
    """Return the elements of a key that have positions; None if the model has no latent attention."""
    return next((attention.head_dim - rank for _, attention, rank in _latents(plan)), None)


def _latents(plan: ModelPlan) -> Iterator[tuple[Part, Attention, int]]:
    """Yield the parts with latent attention, their op, and the elements of a latent vector."""
    latent = {group.id: group.value_dim for group in plan.groups if group.kind == "latent"}
    for part in plan.parts:
        for op in part.ops:
            if isinstance(op, Attention) and op.group in latent:
                yield part, op, latent[op.group]


def _rank_of_queries(part: Part) -> int:
    """Return the elements of the vector from which queries are made; 0 if it is the hidden state."""
    linears = [op for op in part.ops if isinstance(op, Linear)]
    made = {out for op in linears for out in op.outs}
    queries = next(op.x for op in part.ops if isinstance(op, HeadLinear))
    maker = next(op for op in linears if queries in op.outs)
    return maker.weights[0].view_shape[-1] if maker.x in made else 0
