"""Make the GGUF keys for layers with experts and for layers that keep states.

`llmd.models.gguf.families` reads them back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np

from llmd.api.expert_ops import Experts, Router, Score
from llmd.api.ops import Activate, Glu, Linear, Op
from llmd.api.plan import ModelPlan, Part
from llmd.api.state_ops import GatedDelta
from llmd.models.gguf.deepseek4 import DEEPSEEK_V4, deepseek4_keys
from llmd.models.gguf.families import period_of
from llmd.models.gguf.gemma4 import GEMMA4, gemma4_keys
from llmd.models.gguf.kimi_linear import KIMI, kimi_keys
from llmd.models.gguf.metadata import Value
from llmd.models.gguf.mixtures import EXPERTS, GATING, SIGMOID, SOFTMAX, SQRT_SOFTPLUS
from llmd.models.gguf.rwkv7 import rwkv7_keys
from llmd.models.gguf.state_spaces import space_keys

OF_DEEPSEEK = (
    "glm4_moe",
    "glm4_moe_lite",
    "glm_moe_dsa",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    KIMI,
)
"""Architectures with mixtures as DeepSeek introduced them."""
STATE_INNER = (
    *OF_DEEPSEEK,
    "qwen2_moe",
    "qwen3_moe",
    "gpt_oss",
    "qwen3_next",
    "qwen3_5_moe",
    "nemotron_h",
    GEMMA4,
    DEEPSEEK_V4,
)
"""Architectures whose files state the width between the matrices of an expert; in others, it is that of
feed-forward networks."""
STATE_ROUTERS = (*OF_DEEPSEEK, "nemotron_h", DEEPSEEK_V4)
"""Architectures whose files state how routers choose and weigh experts."""
DENSE_FIRST = OF_DEEPSEEK
"""Architectures whose first layers may have no experts."""
ONE_SHARED = ("nemotron_h",)
"""Architectures whose files state the width of shared experts and that there is one."""
COUNT_SHARED = (*OF_DEEPSEEK, DEEPSEEK_V4)
"""Architectures whose files state how many shared experts there are, not their width."""
GATINGS: Mapping[Score, int] = {"softmax": SOFTMAX, "sigmoid": SIGMOID, "sqrt_softplus": SQRT_SOFTPLUS}

Kind = TypeVar("Kind", bound=Op)


def has_experts(plan: ModelPlan) -> bool:
    """Whether a layer has experts."""
    return any(_experts(plan))


def layer_keys(plan: ModelPlan) -> dict[str, Value]:
    """Return the keys without the architecture prefix; none for a model without such layers."""
    return (
        _expert_keys(plan)
        | _delta_keys(plan)
        | space_keys(plan)
        | rwkv7_keys(plan)
        | gemma4_keys(plan)
        | deepseek4_keys(plan)
    )


def _expert_keys(plan: ModelPlan) -> dict[str, Value]:
    part = next(_experts(plan), None)
    if part is None:
        return {}
    experts, router = _of(part, Experts), _of(part, Router)
    inner = experts.down.view_shape[-1]
    keys: dict[str, Value] = {EXPERTS: experts.num_experts, "expert_used_count": experts.top_k}
    if plan.architecture in STATE_INNER:
        keys["expert_feed_forward_length"] = inner
    if plan.architecture in STATE_ROUTERS:
        keys |= _router_keys(plan, router)
    if plan.architecture in DENSE_FIRST:
        keys["leading_dense_block_count"] = part.layer or 0
    if (latent := experts.up.view_shape[-1]) != router.weight.view_shape[-1]:
        keys["moe_latent_size"] = latent
    return keys | _shared_keys(plan, _shared_width(part), inner)


def _shared_keys(plan: ModelPlan, width: int, inner: int) -> dict[str, Value]:
    """Return the width of the expert that all rows use, and how many experts it counts as.

    In Gemma 4, the network beside the experts is none of them.
    """
    if plan.architecture == GEMMA4:
        return {}
    if plan.architecture in COUNT_SHARED:
        return {"expert_shared_count": width // inner}
    one: dict[str, Value] = {"expert_shared_count": 1} if plan.architecture in ONE_SHARED else {}
    return one | ({"expert_shared_feed_forward_length": width} if width else {})


def _router_keys(plan: ModelPlan, router: Router) -> dict[str, Value]:
    keys: dict[str, Value] = {
        GATING: GATINGS[router.score],
        "expert_weights_scale": router.factor,
    }
    if plan.architecture == KIMI:  # llama.cpp always normalises its weights, and knows no groups of them
        return keys
    keys["expert_weights_norm"] = router.normalized
    if plan.architecture == DEEPSEEK_V4:
        return keys
    return keys | {
        "expert_group_count": router.groups,
        "expert_group_used_count": router.top_groups,
    }


def _shared_width(part: Part) -> int:
    """Return the width between the matrices of the expert that all rows use; 0 if there is none."""
    inner = {op.out for op in part.ops if isinstance(op, Glu | Activate)}
    downs = (op for op in part.ops if isinstance(op, Linear) and op.x in inner)
    return next((op.weights[0].view_shape[-1] for op in downs), 0)


def _delta_keys(plan: ModelPlan) -> dict[str, Value]:
    delta = next((op for part in plan.parts for op in part.ops if isinstance(op, GatedDelta)), None)
    if delta is None:
        return {}
    if plan.architecture == KIMI:
        return kimi_keys(plan, delta)
    return {
        "ssm.conv_kernel": delta.taps,
        "ssm.state_size": delta.key_dim,
        "ssm.group_count": delta.key_heads,
        "ssm.time_step_rank": delta.heads,
        "ssm.inner_size": delta.heads * delta.value_dim,
        **_linear_layers(plan),
    }


def _linear_layers(plan: ModelPlan) -> dict[str, Value]:
    """Return which layers have linear attention: by the interval of the others, or a flag for each."""
    found = {part.layer for part in plan.parts for op in part.ops if isinstance(op, GatedDelta)}
    flags = [layer in found for layer in range(plan.num_layers)]
    if interval := period_of(flags):
        return {"full_attention_interval": interval}
    return {"attention.recurrent_layers": np.array(flags)}


def _experts(plan: ModelPlan) -> Iterator[Part]:
    """Yield the parts with experts."""
    return (part for part in plan.parts if any(isinstance(op, Experts) for op in part.ops))


def _of(part: Part, kind: type[Kind]) -> Kind:
    return next(op for op in part.ops if isinstance(op, kind))
