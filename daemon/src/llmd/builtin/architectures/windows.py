"""Which layers see only a window of the last tokens."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.builtin.architectures.config_fields import ConfigFields

Windows = tuple[int | None, ...]
"""For each layer its window in tokens, the row's own included; None for full attention."""

DEFAULT_WINDOW = 4096
"""What an absent ``sliding_window`` means in most families that have one."""

LAYER_TYPES = ("full_attention", "sliding_attention")


def read_window(fields: ConfigFields, absent: int | None = DEFAULT_WINDOW) -> int | None:
    """``sliding_window``; None where it is null."""
    return fields.size_or_null("sliding_window", absent)


def layer_windows(
    fields: ConfigFields, num_layers: int, window: int | None, sliding: Sequence[bool]
) -> Windows:
    """The window of each layer: as ``layer_types`` says, else where ``sliding`` is true.

    Raises:
        CheckpointError: a layer is to slide over no window, or ``layer_types`` has another length.
        UnsupportedModelError: a layer type is unknown.
    """
    if "layer_types" in fields:
        types = fields.names("layer_types", num_layers, LAYER_TYPES)
        sliding = [name == "sliding_attention" for name in types]
    if window is None and any(sliding):
        fields.contradict(
            "layers are of type sliding_attention, but sliding_window says that there is no window"
        )
    return tuple(window if slides else None for slides in sliding)
