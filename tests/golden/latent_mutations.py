"""Mistakes in models with latent attention that the golden bound must notice."""

from __future__ import annotations

from tests.golden.models.latents import LITE_ROPE, V3_ROPE
from tests.golden.mutations import (
    Mutation,
    drop_biases,
    drop_correction,
    join_queries_as_one_head,
    join_the_other_way,
    score_by_softmax,
    sum_two_of_groups,
    take_one_epsilon,
    take_other_columns,
    take_other_rows,
)

LATENTS = [
    Mutation("deepseek-v2-lite", what, change=change)
    for what, change in (
        ("columns of keys", take_other_columns),
        ("rows of values", take_other_rows),
        ("joined the other way", join_the_other_way),
        ("queries joined as one head", join_queries_as_one_head),
        ("one epsilon", take_one_epsilon),
    )
] + [
    Mutation(
        "deepseek-v2-lite",
        "scale of scores",
        {"rope_scaling": LITE_ROPE | {"mscale": 0.72, "mscale_all_dim": 0.72}},
    ),
    Mutation("deepseek-v2-groups", "one group less", {"topk_group": 1}),
    Mutation("deepseek-v2-groups", "no groups", {"topk_method": "greedy"}),
    Mutation("deepseek-v2-groups", "two in a group", change=sum_two_of_groups),
    Mutation("deepseek-v2-groups", "factor", {"routed_scaling_factor": 1.71}),
    Mutation("deepseek-v2-groups", "no biases", change=drop_biases),
    Mutation("deepseek-v3", "one epsilon", change=take_one_epsilon),
    Mutation("deepseek-v3", "no correction", change=drop_correction),
    Mutation("deepseek-v3", "not normalized", {"norm_topk_prob": False}),
    Mutation("deepseek-v3-halves", "pairs of neighbours", {"rope_interleave": True}),
    Mutation("deepseek-v3-halves", "scale of elements", {"rope_scaling": V3_ROPE | {"mscale": 0.8}}),
    Mutation("glm4-moe-lite", "factor", {"routed_scaling_factor": 1.79}),
    Mutation("glm4-moe-lite", "softmax", change=score_by_softmax),
    Mutation("deepseek-v3", "no groups", {"n_group": 1, "topk_group": 1}),
    Mutation("deepseek-v3", "factor", {"routed_scaling_factor": 2.4}),
    Mutation("glm4-moe-lite", "no correction", change=drop_correction),
    Mutation("glm4-moe-lite", "not normalized", {"norm_topk_prob": False}),
    *(
        Mutation(name, f"YaRN: {field}", {"rope_scaling": LITE_ROPE | {field: wrong}})
        for name in ("deepseek-v2-lite", "deepseek-v3", "deepseek-v32")
        for field, wrong in (
            ("factor", 4.1),
            ("original_max_position_embeddings", 64),
            ("beta_fast", 1.2),
            ("beta_slow", 0.5),
        )
    ),
    *(Mutation(name, "no YaRN", {"rope_scaling": None}) for name in ("deepseek-v2-lite", "deepseek-v3")),
    Mutation("deepseek-v3-halves", "scale of scores", {"rope_scaling": V3_ROPE | {"mscale_all_dim": 0.82}}),
    Mutation("deepseek-v2-groups", "smaller groups", {"n_group": 8}),
    Mutation("glm4-moe-lite", "groups", {"n_group": 2}),
    Mutation("deepseek-v3", "one group less", {"topk_group": 1}),
    Mutation("glm4-moe-lite", "one epsilon", change=take_one_epsilon),
]
