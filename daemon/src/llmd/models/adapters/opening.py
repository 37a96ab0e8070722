"""Open the adapters of a model, each in the form that it is stored in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from llmd.models.adapters.adapter import Adapter, AdapterForm
from llmd.models.adapters.gguf_adapter import open_gguf
from llmd.models.adapters.peft_adapter import open_peft
from llmd.models.checkpoint import Checkpoint
from llmd.models.gguf.model_files import is_gguf
from llmd.models.mapped_file import Mapper, map_file


def add_adapters(
    checkpoint: Checkpoint, adapters: Mapping[str, str], form: AdapterForm, *, mapper: Mapper = map_file
) -> Sequence[Adapter]:
    """Open LoRA adapters, given as directories or GGUF files by name, and add their tensors to a checkpoint.

    ``form`` is that of the checkpoint.

    Raises:
        CheckpointError: a file of an adapter is missing or damaged.
        UnsupportedModelError: an adapter has something that llmd does not apply.
    """
    opened = []
    for name, place in adapters.items():
        open_adapter = open_gguf if is_gguf(Path(place).name) else open_peft
        opened.append(open_adapter(name, Path(place), form, mapper=mapper))
        checkpoint.add(opened[-1])
    return opened
