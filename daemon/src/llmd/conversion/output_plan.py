"""A model in another form, before its weights are written: what is in its files, and where."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import UnsupportedModelError
from llmd.api.ops import Op, Rope
from llmd.api.plan import ModelPlan
from llmd.api.plugins import Architecture
from llmd.api.tensors import Format
from llmd.conversion.formats import Formats
from llmd.conversion.tensor_map import MappedTensor
from llmd.models.model_source import ModelSource, find_source
from llmd.models.new_weights import Layout, NewTensor
from llmd.models.open_model import OpenModel, find_architecture, open_model


class Source(msgspec.Struct, frozen=True):
    """The model that is converted. ``plan`` has the names of transformers, ``model.plan`` those of the files."""

    path: Path
    form: ModelSource
    model: OpenModel
    plan: ModelPlan


class OutputPlan(msgspec.Struct, frozen=True):
    """``files`` are small, by their names in a directory; ``given`` are tensors that the configuration brings along."""

    layout: Layout
    tensors: tuple[NewTensor, ...]
    files: Mapping[str, bytes] = {}
    given: Mapping[str, NDArray[np.generic]] = {}
    notices: tuple[str, ...] = ()


class Target(Protocol):
    """A form in which models are written."""

    def plan(self, source: Source) -> ModelPlan:
        """The plan that the written model is to have.

        Raises:
            UnsupportedModelError: this form has no such models.
        """
        ...

    def formats(
        self, source: Source, tensor_map: Mapping[str, MappedTensor], quant: Format | None
    ) -> Formats:
        """The format of each tensor.

        Raises:
            ConfigError: this form has no such weights, or these cannot become them.
        """
        ...

    def output(
        self, source: Source, plan: ModelPlan, tensor_map: Mapping[str, MappedTensor], formats: Formats
    ) -> OutputPlan:
        """What is to be written.

        Raises:
            ModelError: this form cannot say something of the model.
        """
        ...

    def weights(self, path: Path) -> Path:
        """The file of the weights of the model in ``path``."""
        ...


def open_source(path: Path, architectures: Mapping[str, Architecture]) -> Source:
    """Open what is to be converted; the caller closes its checkpoint.

    Raises:
        LlmdError: as `open_model`.
        UnsupportedModelError: it embeds or ranks texts, which files say in ways that are not translated.
    """
    form = find_source(path)
    config = form.read_config()
    architecture = find_architecture(config, architectures, file=str(form.config_file))
    model = open_model(path, architectures)
    if model.embedding is not None:
        model.checkpoint.close()
        raise UnsupportedModelError(
            f"{path}: models that embed or rank texts are not converted yet",
            hint="llmd serves it in the form that it has",
        )
    return Source(path, form, model, architecture.plan(config, None))


def rotating(plan: ModelPlan, *, interleaved: bool) -> ModelPlan:
    """The plan with other elements of a head rotated together."""

    def changed(op: Op) -> Op:
        return msgspec.structs.replace(op, interleaved=interleaved) if isinstance(op, Rope) else op

    parts = (msgspec.structs.replace(part, ops=tuple(map(changed, part.ops))) for part in plan.parts)
    return msgspec.structs.replace(plan, parts=tuple(parts))


def new_tensors(
    tensor_map: Mapping[str, MappedTensor], formats: Mapping[str, Format]
) -> tuple[NewTensor, ...]:
    """The tensors of a target in the order of their tensor_map."""
    return tuple(NewTensor(name, formats[name], move.ref.shape) for name, move in tensor_map.items())
