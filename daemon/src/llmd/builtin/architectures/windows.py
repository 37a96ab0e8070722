"""The sliding window of each layer."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.builtin.architectures.config_fields import ConfigFields

Windows = tuple[int | None, ...]
"""The window of each layer in tokens, including the current one; None for full attention."""

DEFAULT_WINDOW = 4096
"""The window if ``sliding_window`` is missing, in most families that have one."""

LAYER_TYPES = ("full_attention", "sliding_attention")


def read_window(fields: ConfigFields, absent: int | None = DEFAULT_WINDOW) -> int | None:
    """Return ``sliding_window``; None if it is null."""
    return fields.size_or_null("sliding_window", absent)


def layer_windows(
    fields: ConfigFields, num_layers: int, window: int | None, sliding: Sequence[bool]
) -> Windows:
    """Return the window of each layer, according to ``layer_types`` or otherwise to ``sliding``.

    Raises:
        CheckpointError: a layer needs a window but none is stated, or ``layer_types`` has the wrong length.
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
