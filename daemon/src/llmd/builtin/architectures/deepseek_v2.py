"""DeepSeek-V2 and V2-Lite: latent attention, and mixtures with softmax routers."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.deepseek import latent_plan
from llmd.builtin.architectures.mixture import MAX_EXPERTS, Mixture, read_top_k, shared_expert

GROUPED = {"greedy": False, "group_limited_greedy": True}
"""Whether experts are chosen from some groups only, by ``topk_method``."""


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: DeepSeek-AI 2024, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language
    Model".
    """
    fields = ConfigFields(config)
    dense = fields.count("first_k_dense_replace", 0)
    return latent_plan("deepseek_v2", fields, _mixture(fields), dense, context_len)


def _mixture(fields: ConfigFields) -> Mixture:
    count = fields.size("n_routed_experts", at_most=MAX_EXPERTS)
    groups, top_groups = 1, 1
    if fields.choice("topk_method", GROUPED, "greedy"):
        groups, top_groups = fields.size("n_group"), fields.size("topk_group")
    if count % groups or top_groups > groups:
        fields.contradict(f"{count} experts cannot be in {groups} groups, of which {top_groups} are used")
    if fields.flag("norm_topk_prob", default=False):
        fields.refuse_unsupported("norm_topk_prob", value=True, known="false")
    inner = fields.size("moe_intermediate_size")
    return Mixture(
        count,
        inner,
        read_top_k(fields, count),
        normalized=False,
        factor=fields.positive("routed_scaling_factor", 1.0),
        groups=groups,
        top_groups=top_groups,
        group_score="largest",
        shared=shared_expert("mlp.shared_experts", inner * fields.size("n_shared_experts")),
    )
