"""Gemma 3 text: norms of queries and keys, several windowed layers per full one, a RoPE for each kind."""

from __future__ import annotations

from llmd.api import ModelPlan
from llmd.api.plugins import Config
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.decoder import Family, decoder_plan
from llmd.builtin.architectures.gemma import DEFAULT_HEAD_DIM, gemma_ends, gemma_style
from llmd.builtin.architectures.rope import DEFAULT_THETA, RopeConfig, read_rope, rope_config, rope_table
from llmd.builtin.architectures.shape import read_shape
from llmd.builtin.architectures.windows import layer_windows, read_window

FULL_THETA = 1000000.0
FULL_EVERY = 6


def plan(config: Config, context_len: int | None) -> ModelPlan:
    """Source: Gemma Team 2025, "Gemma 3 Technical Report"."""
    fields = ConfigFields(config)
    shape = read_shape(fields, default_head_dim=DEFAULT_HEAD_DIM)
    period = fields.size("sliding_window_pattern", FULL_EVERY)
    sliding = [(layer + 1) % period != 0 for layer in range(shape.num_layers)]
    windows = layer_windows(fields, shape.num_layers, read_window(fields), sliding)
    full, local = _ropes(fields)
    context_len = context_len or full.max_len
    full_table, local_table = (rope_table(rope, shape.head_dim, context_len) for rope in (full, local))
    tables = [full_table if window is None else local_table for window in windows]
    style = gemma_style(fields, qk_norm="head")
    family = Family("gemma3", shape, style, gemma_ends(fields, shape, softcap=None), windows)
    return decoder_plan(family, tables, full.max_context_len, context_len)


def _ropes(fields: ConfigFields) -> tuple[RopeConfig, RopeConfig]:
    """Return the RoPE of full and of windowed layers; the old spelling never scales the latter."""
    new = fields.inside("rope_parameters")
    local = new.inside("sliding_attention")
    local_theta = local.positive("rope_theta", fields.positive("rope_local_base_freq", DEFAULT_THETA))
    full = new.inside("full_attention") if "full_attention" in new else new
    return read_rope(fields, full, default_theta=FULL_THETA), rope_config(fields, local, local_theta)
