"""What `llmd show` says of the layers of a model, and of tensors that are not loaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from llmd.api.byte_size import format_bytes
from llmd.api.errors import LlmdError

if TYPE_CHECKING:
    from llmd.models.structure import ExpertLayers, NotLoaded, Structure


def read_structure(directory: Path) -> Structure | None:
    """Return what the model consists of; None if it cannot be opened."""
    from llmd.cli.composition import build_host
    from llmd.models.open_model import open_model
    from llmd.models.structure import structure_of

    try:
        model = open_model(directory, build_host().architectures())
    except LlmdError:
        return None
    with model.checkpoint:
        return structure_of(model.plan, model.checkpoint)


def structure_lines(structure: Structure | None) -> Iterator[list[str]]:
    """Yield titles and values of what not every model has."""
    if structure is None:
        return
    layers = structure.layers
    for kind in structure.experts:
        yield ["experts", _experts(kind, layers)]
    yield from _kinds_of_layers(structure)
    for part in structure.not_loaded:
        yield ["not loaded", _not_loaded(part)]


def _kinds_of_layers(structure: Structure) -> Iterator[list[str]]:
    plain = structure.attention_layers - structure.latent_layers
    has_states = structure.linear_layers or structure.space_layers
    counts = (
        ("attention", "", plain if has_states else 0),
        ("sliding window", f"of {structure.window:,} positions ", structure.window_layers),
        ("latent attention", "", structure.latent_layers),
        ("keys of other layers", "", structure.borrowing_layers),
        ("linear attention", "", structure.linear_layers),
        ("state spaces", "", structure.space_layers),
        ("attention sinks", "", structure.sink_layers),
        (
            "sparse attention",
            f"to at most {structure.chosen_positions:,} positions ",
            structure.indexed_layers,
        ),
    )
    for title, lead, count in counts:
        if count:
            yield [title, f"{lead}in {count} of {structure.layers} layers"]
    for kind in structure.vectors:
        seen = f"distant tokens as one vector for {kind.tokens}"
        yield ["compressed attention", f"{seen} in {kind.layers} of {structure.layers} layers"]
    if structure.streams > 1:
        yield ["residual streams", str(structure.streams)]


def _experts(kind: ExpertLayers, layers: int) -> str:
    shared = ", and one that all tokens use" if kind.has_shared else ""
    return f"{kind.experts} in {kind.layers} of {layers} layers; a token uses {kind.active}{shared}"


def _not_loaded(part: NotLoaded) -> str:
    return f"{part.what}: {part.tensors} tensors, {format_bytes(part.size_bytes)}"
