"""Inputs of single layers: each layer adds something of its own for each token (Gemma 3n, Gemma 4).

One table and one matrix have the columns and rows of all layers. Each layer looks up and computes its own:
so nothing but hidden states goes from part to part.

Source: Gemma Team 2025, "Gemma 3n" (per-layer embeddings).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from llmd.api import HIDDEN, Add, Embed, Glu, Linear, Norm, Op, TensorRef
from llmd.builtin.architectures.layer import LayerBuilder


class PerLayerInput(msgspec.Struct, frozen=True):
    """The inputs of layers."""

    width: int
    """Elements of an input."""
    table_rows: int
    """Tokens in the table."""
    num_layers: int
    embedding: Embed
    """The embedding of the model, from which a part of the inputs is computed."""

    @property
    def whole_width(self) -> int:
        """Elements of the inputs of all layers."""
        return self.num_layers * self.width


def per_layer_ops(inputs: PerLayerInput, build: LayerBuilder) -> Iterator[Op]:
    """Yield the ops that add to the hidden states what a layer makes of its input."""
    width, hidden = inputs.width, build.shape.hidden_size
    yield from _input(inputs, build)
    yield build.linear(HIDDEN, {"gate": ("per_layer_input_gate", width)}, hidden, bias=False)
    yield Glu("gate", "input", "y", build.style.activation)
    yield build.linear("y", {"y": ("per_layer_projection", hidden)}, width, bias=False)
    yield build.norm("y", "y", "post_per_layer_input_norm", hidden)
    yield Add(HIDDEN, "y", HIDDEN)


def _input(inputs: PerLayerInput, build: LayerBuilder) -> Iterator[Op]:
    """Yield the ops of ``(norm(projection(embedding) / sqrt(hidden)) + table * sqrt(width)) / sqrt(2)``.

    Instead of the projection, its norm is scaled: ``norm(x / c)`` with eps is ``norm(x)`` with ``eps * c^2``.
    """
    width, hidden = inputs.width, build.shape.hidden_size
    mine = (build.layer * width, (build.layer + 1) * width)
    projection = TensorRef("model.per_layer_model_projection.weight", (inputs.whole_width, hidden), rows=mine)
    gain = TensorRef("model.per_layer_projection_norm.weight", (width,))
    table = TensorRef("model.embed_tokens_per_layer.weight", (inputs.table_rows, inputs.whole_width))
    yield msgspec.structs.replace(inputs.embedding, out="embedded")
    yield Linear("embedded", ("projected",), (projection,), (None,))
    yield Norm("projected", "projected", gain, build.style.eps * hidden)
    yield Embed("found", table, math.sqrt(width / 2), columns=mine)
    yield Add("found", "projected", "input", math.sqrt(0.5))
