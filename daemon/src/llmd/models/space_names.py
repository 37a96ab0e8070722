"""What families call the sizes of their state spaces in ``config.json``."""

from __future__ import annotations

import msgspec


class SpaceNames(msgspec.Struct, frozen=True):
    """Names of the fields of a family."""

    heads: str
    head_dim: str
    groups: str
    state_size: str
    taps: str
    has_filter_bias: str
    has_bias: str


GRANITE_HYBRID = SpaceNames(
    heads="mamba_n_heads",
    head_dim="mamba_d_head",
    groups="mamba_n_groups",
    state_size="mamba_d_state",
    taps="mamba_d_conv",
    has_filter_bias="mamba_conv_bias",
    has_bias="mamba_proj_bias",
)
NEMOTRON_H = SpaceNames(
    heads="mamba_num_heads",
    head_dim="mamba_head_dim",
    groups="n_groups",
    state_size="ssm_state_size",
    taps="conv_kernel",
    has_filter_bias="use_conv_bias",
    has_bias="use_bias",
)
MAMBA2 = SpaceNames(
    heads="num_heads",
    head_dim="head_dim",
    groups="n_groups",
    state_size="state_size",
    taps="conv_kernel",
    has_filter_bias="use_conv_bias",
    has_bias="use_bias",
)
