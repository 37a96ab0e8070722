"""Plan the files of a converted model before its weights are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.errors import UnsupportedModelError
from llmd.api.latent_ops import Indexer
from llmd.api.ops import Rope
from llmd.api.plan import ModelPlan, Part
from llmd.api.plugins import Architecture, Config
from llmd.api.tensors import Format
from llmd.conversion.formats import Formats
from llmd.conversion.tensor_map import MappedTensor
from llmd.models.model_source import ModelSource, find_source
from llmd.models.new_weights import Layout, NewTensor
from llmd.models.open_model import OpenModel, find_architecture, open_model


class Source(msgspec.Struct, frozen=True):
    """The model to convert."""

    path: Path
    form: ModelSource
    model: OpenModel
    """Its plan has the tensor names of the files."""
    plan_of: Callable[[Config], ModelPlan]
    """Plans such a model from another configuration."""

    @property
    def text_config(self) -> Config:
        """The configuration, or the part of it that describes the text model."""
        config: Config = self.model.config.get("text_config") or self.model.config
        return config

    @property
    def plan(self) -> ModelPlan:
        """The plan with the tensor names of transformers."""
        return self.plan_of(self.model.config)

    def plan_with(self, fields: Mapping[str, Any]) -> ModelPlan:
        """Return this plan with other fields of the configuration."""
        config = self.model.config
        text = {"text_config": {**self.text_config, **fields}} if config.get("text_config") else fields
        return self.plan_of({**config, **text})


class OutputPlan(msgspec.Struct, frozen=True):
    """What to write."""

    layout: Layout
    tensors: tuple[NewTensor, ...]
    files: Mapping[str, bytes] = {}
    """Contents of the small files of a directory, by name."""
    given: Mapping[str, NDArray[np.generic]] = {}
    """Tensors that follow from the configuration, by name."""
    notices: tuple[str, ...] = ()


class Target(Protocol):
    """A form in which models can be written."""

    def plan(self, source: Source, quant: Format | None) -> ModelPlan:
        """Return the plan that the written model must have if its matrices become ``quant``.

        Raises:
            UnsupportedModelError: this form cannot hold such a model.
        """
        ...

    def formats(
        self, source: Source, tensor_map: Mapping[str, MappedTensor], quant: Format | None
    ) -> Formats:
        """Choose the format of each tensor.

        Raises:
            ConfigError: this form cannot hold ``quant``, or the weights cannot be converted to it.
        """
        ...

    def output(
        self, source: Source, plan: ModelPlan, tensor_map: Mapping[str, MappedTensor], formats: Formats
    ) -> OutputPlan:
        """Return what to write.

        Raises:
            ModelError: this form cannot express something about the model.
        """
        ...

    def weights(self, path: Path) -> Path:
        """Return the weights file of the model in ``path``."""
        ...


def open_source(path: Path, architectures: Mapping[str, Architecture]) -> Source:
    """Open the model to convert; the caller closes its checkpoint.

    Raises:
        LlmdError: see `open_model`.
        UnsupportedModelError: it embeds or ranks texts, which files describe in ways that llmd does not
            convert.
    """
    form = find_source(path)
    config = form.read_config()
    architecture = find_architecture(config, architectures, file=str(form.config_file))
    model = open_model(path, architectures)
    if model.embedding is not None:
        model.checkpoint.close()
        raise UnsupportedModelError(
            f"{path}: models that embed or rank texts are not converted yet",
            hint="llmd can serve it in its current form",
        )
    return Source(path, form, model, lambda config: architecture.plan(config, None))


def rotating(plan: ModelPlan, *, interleaved: bool) -> ModelPlan:
    """Return the plan with RoPE that is interleaved, or not. Indexers keep theirs: all files store them
    alike.
    """

    def changed(part: Part) -> Part:
        kept = {value for op in part.ops if isinstance(op, Indexer) for value in (op.q, op.k)}
        ops = (
            msgspec.structs.replace(op, interleaved=interleaved)
            if isinstance(op, Rope) and op.x not in kept
            else op
            for op in part.ops
        )
        return msgspec.structs.replace(part, ops=tuple(ops))

    return msgspec.structs.replace(plan, parts=tuple(map(changed, plan.parts)))
