"""Open an adapter in a GGUF file, as llama.cpp's converter writes it.

Source: ``convert_lora_to_gguf.py`` and ``src/llama-adapter.cpp`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.models.adapters.adapter import Adapter, AdapterForm, Change, check_pairs
from llmd.models.gguf.fields import MetadataFields, architecture_name
from llmd.models.gguf.gguf_file import GgufFile
from llmd.models.mapped_file import Mapper, map_file

FIRST, SECOND = ".weight.lora_a", ".weight.lora_b"
"""The ends of the names of both matrices of a module, ``[rank, in]`` and ``[out, rank]``."""
MERGE = "merge the adapter into the model and serve the result"


def open_gguf(name: str, path: Path, form: AdapterForm, *, mapper: Mapper = map_file) -> Adapter:
    """Open the adapter in a file, for a GGUF model; rows of its matrices have that model's order.

    Raises:
        CheckpointError: the file is damaged, or no adapter.
        UnsupportedModelError: the model is no GGUF file, or the adapter has something that llmd does not
            apply.
    """
    if not form.architecture:
        raise UnsupportedModelError(
            f"{path}: an adapter in GGUF is for a model in GGUF, whose rows have another order",
            hint="give the directory of the adapter that PEFT wrote, or serve the GGUF file of the model",
        )
    with contextlib.ExitStack() as opened:
        file = GgufFile.open(path, mapper=mapper)
        opened.callback(file.close)
        _check_kind(file, form.architecture)
        pairs = _pairs(file)
        check_pairs(file, pairs)
        alpha = MetadataFields(file.metadata).real("adapter.lora.alpha", 0.0)
        changes = {module: _change(file, pair, alpha) for module, pair in pairs.items()}
        opened.pop_all()
        return Adapter(name, file, changes)


def _check_kind(file: GgufFile, architecture: str) -> None:
    fields = MetadataFields(file.metadata)
    kind, sort = fields.text("general.type", ""), fields.text("adapter.type", "")
    if kind != "adapter" or sort != "lora":
        raise UnsupportedModelError(
            f"{file.path}: general.type is {kind or 'not stated'} and adapter.type {sort or 'not stated'}, "
            "but a LoRA adapter has adapter and lora",
            hint="give the file that llama.cpp's convert_lora_to_gguf.py wrote",
        )
    if "adapter.alora.invocation_tokens" in file.metadata:
        raise UnsupportedModelError(
            f"{file.path}: adapter.alora.invocation_tokens is set (an activated adapter), which llmd does not "
            "apply",
            hint=MERGE,
        )
    stated = architecture_name(file.metadata)
    if stated != architecture:
        raise CheckpointError(
            f"the adapter is for the architecture {stated}, the model has {architecture}",
            file=str(file.path),
            hint="give the adapter of this model",
        )


def _pairs(file: GgufFile) -> Mapping[str, tuple[str, str]]:
    for name in file.tensors:
        if not name.endswith((FIRST, SECOND)):
            raise UnsupportedModelError(
                f"{file.path}: {name}: llmd applies lora_a and lora_b of linear layers, and no other tensors",
                hint=MERGE,
            )
    modules = dict.fromkeys(name[: -len(FIRST)] for name in file.tensors)
    return {module: (module + FIRST, module + SECOND) for module in modules}


def _change(file: GgufFile, pair: tuple[str, str], alpha: float) -> Change:
    """Return a change; without an alpha, llama.cpp takes the product as it is."""
    rank = file.tensors[pair[0]].shape[0]
    return Change(*pair, rank, alpha / rank if alpha else 1.0)
