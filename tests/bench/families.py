"""Tiny shapes, one of each family."""

from __future__ import annotations

from dataclasses import replace

from bench.shapes import Shape

LLAMA = Shape("tiny-llama", hidden=64, layers=2, heads=4, kv_heads=2, head_dim=16, ffn=96, vocab=500)
QWEN3 = replace(LLAMA, name="tiny-qwen3", family="qwen3", rope_theta=1e6)
PHI3 = replace(LLAMA, name="tiny-phi3", family="phi3", rotary=0.75, tied=False)
FAMILIES = (LLAMA, QWEN3, PHI3)
