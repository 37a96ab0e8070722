"""Tiny shapes, one of each family."""

from __future__ import annotations

from dataclasses import replace

from bench.compressed import Compressed
from bench.shapes import LinearAttention, Mixture, Shape

LLAMA = Shape("tiny-llama", hidden=64, layers=2, heads=4, kv_heads=2, head_dim=16, ffn=96, vocab=500)
QWEN3 = replace(LLAMA, name="tiny-qwen3", family="qwen3", rope_theta=1e6)
PHI3 = replace(LLAMA, name="tiny-phi3", family="phi3", rotary=0.75, tied=False)
QWEN3_MOE = replace(QWEN3, name="tiny-qwen3-moe", family="qwen3_moe", mixture=Mixture(6, 2, 32), tied=False)
QWEN3_5 = replace(
    LLAMA, name="tiny-qwen3.5", layers=3, family="qwen3_5", rotary=0.5, linear=LinearAttention(3, 2, 4, 16)
)
DEEPSEEK_V4 = replace(
    LLAMA,
    name="tiny-deepseek-v4",
    layers=3,
    kv_heads=1,
    family="deepseek_v4",
    mixture=Mixture(6, 2, 32),
    tied=False,
    compressed=Compressed(24, 2, 12, 8, 3, 16, 5, window=10),
)
DENSE = (LLAMA, QWEN3, PHI3)
FAMILIES = (*DENSE, QWEN3_MOE, QWEN3_5, DEEPSEEK_V4)
